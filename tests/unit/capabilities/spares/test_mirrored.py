"""A mirrored node belongs to no template, even if the leaf's labels name one."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.report import report
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.kube.objects import Node
from nodeyard.plan.model import ObjectRef

from ....builders.spares import NOW, all_done, node, owned, snapshot, spare, template

DELETING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
REAL = [owned(name, "web") for name in ("a", "b", "c")]


def mirrored(name: str, named: str = "web", **given: Any) -> Node:
    labels = {names.TEMPLATE_LABEL: named, MIRRORED_NODE: "true"}
    return node(name, labels=labels, annotations={MIRRORED_CLUSTER: "east"}, **given)


MIRRORS = [mirrored(name) for name in ("m1", "m2", "m3")]


def reasons(seen: SparesSnapshot) -> list[tuple[str, str]]:
    return [(action.object.name, action.reason) for action in plan(seen, NOW).plan.actions]


def current(seen: SparesSnapshot) -> list[str]:
    planned = plan(seen, NOW)
    [write] = report(seen, planned.plan, all_done(planned), NOW).statuses
    assert write.status["currentNodes"] == len(write.status["nodes"])
    return list(write.status["nodes"])


def test_no_node_is_given_back_for_it() -> None:
    seen = snapshot([*REAL, *MIRRORS], [template("web", 3, releasePolicy="Release")])
    assert reasons(seen) == []
    assert current(seen) == ["a", "b", "c"]


def test_it_hides_no_shortage() -> None:
    seen = snapshot([*REAL, *MIRRORS, spare("d")], [template("web", 4)])
    assert reasons(seen) == [("d", "Claimed")]
    assert current(seen) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("policy", ["Retain", "Release"])
def test_a_template_that_is_deleted_leaves_it_alone_and_does_not_wait_for_it(policy: str) -> None:
    seen = snapshot(MIRRORS, [template("web", 3, releasePolicy=policy, metadata=DELETING)])
    assert reasons(seen) == [("web", "FinalizerRemoved")]


def test_it_is_left_alone_where_there_is_no_such_template() -> None:
    assert reasons(snapshot([mirrored("m1", "gone", taints=[f"{names.SPARE_TAINT}:NoSchedule"])])) == []


def test_it_is_not_counted_among_the_nodes_that_the_brake_takes_a_share_of() -> None:
    assert SPARES.managed_nodes is not None
    assert SPARES.managed_nodes(snapshot([*REAL, *MIRRORS])) == 3


def test_why_names_the_capability_that_owns_it() -> None:
    seen = snapshot([*REAL, *MIRRORS], [template("web", 3), template("other")])
    [decision] = plan(seen, NOW, [ObjectRef(api_version="v1", kind="Node", name="m1")]).plan.decisions
    assert (decision.rule, decision.facts.owner) == ("OwnedElsewhere", "clustertree")
    assert [(each.name, each.is_taken, each.reason) for each in decision.candidates] == [
        ("other", False, "OwnedElsewhere"),
        ("web", False, "OwnedElsewhere"),
    ]
