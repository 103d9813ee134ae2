"""Nodes with only the owner's label are adopted up to `spec.nodes` and get no restricted labels."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.memory import kept_bytes

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import NodesMessage
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.planning.node_patch import Displaced, Record, digest_of, encode, record_of
from nodeyard.capabilities.spares.report import report
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.plan.model import ObjectRef

from ....builders.spares import (
    NOW,
    all_done,
    apply,
    born,
    converge,
    described,
    find,
    owned,
    snapshot,
    spare,
    template,
)

VAULT = "node-restriction.kubernetes.io/vault"
GUARDED = described(labels={VAULT: "true", "tier": "vault"})


def reasons(seen: SparesSnapshot) -> dict[str, str]:
    return {action.object.name: action.reason for action in plan(seen, NOW).plan.actions}


def blocked(seen: SparesSnapshot) -> dict[str, list[str]]:
    refused = (each.facts for each in plan(seen, NOW).plan.blocked)
    return {each.reason: list(each.nodes) for each in refused if isinstance(each, NodesMessage)}


def test_a_node_that_only_carries_the_label_is_adopted_and_this_is_recorded() -> None:
    after, _ = converge(snapshot([born("a", "web")], [template("web", 1)]))
    record = record_of(find(after, "a"))
    assert record is not None
    assert record.adopted
    assert record.template == "web"


def test_above_spec_nodes_it_is_ignored_and_not_counted() -> None:
    seen = snapshot([owned("a", "web"), born("b", "web")], [template("web", 1, template=GUARDED)])
    planned = plan(seen, NOW)
    assert "b" not in {action.object.name for action in planned.plan.actions}
    assert blocked(seen)["NotAdopted"] == ["b"]
    [write] = report(seen, planned.plan, all_done(planned), NOW).statuses
    assert write.status["currentNodes"] == 1
    assert write.status["refusals"]["NotAdopted"] == 1


def test_a_later_node_displaces_no_member_regardless_of_its_name() -> None:
    adopted, _ = converge(snapshot([born("m", "web")], [template("web", 1)]))
    seen = SparesSnapshot([born("a", "web"), *adopted.nodes], adopted.templates)
    assert reasons(seen) == {}
    assert blocked(seen) == {"NotAdopted": ["a"]}


def test_it_is_adopted_before_a_spare_is_claimed() -> None:
    assert reasons(snapshot([born("b", "web"), spare("a")], [template("web", 1)])) == {"b": "Adopted"}


def test_an_adopted_node_gets_no_restricted_label_and_this_is_reported() -> None:
    seen = snapshot([born("a", "web")], [template("web", 1, template=GUARDED)])
    after, _ = converge(seen)
    assert VAULT not in find(after, "a").metadata.labels
    assert find(after, "a").metadata.labels["tier"] == "vault"
    assert blocked(after) == {"RestrictedLabelsWithheld": ["a"]}


@pytest.mark.parametrize("key", ["node-restriction.kubernetes.io/x", "team.node-restriction.kubernetes.io/x"])
def test_a_template_that_trusts_such_nodes_gives_them_the_label(key: str) -> None:
    trusting = template("web", 1, template=described(labels={key: "true"}), adoption={"restrictedLabels": True})
    after, _ = converge(snapshot([born("a", "web")], [trusting]))
    assert find(after, "a").metadata.labels[key] == "true"
    assert blocked(after) == {}


def test_a_claimed_node_gets_restricted_labels() -> None:
    after, _ = converge(snapshot([spare("a")], [template("web", 1, template=GUARDED)]))
    assert find(after, "a").metadata.labels[VAULT] == "true"


def test_a_restricted_label_that_the_node_has_already_is_left_on_it() -> None:
    after, _ = converge(snapshot([born("a", "web", labels={VAULT: "true"})], [template("web", 1, template=GUARDED)]))
    assert find(after, "a").metadata.labels[VAULT] == "true"
    assert blocked(after) == {}


def sealed(record: Record) -> dict[str, str]:
    """Return the digest label of a record."""
    return {names.RECORD_DIGEST: digest_of(encode(record))}


def test_the_record_of_another_template_does_not_make_a_node_claimed() -> None:
    record = Record(template="other", labels={"tier": "other"})
    labels = {"tier": "other", **sealed(record)}
    relabelled = born("a", "web", labels=labels, annotations={names.RECORD: encode(record)})
    after, _ = converge(snapshot([relabelled], [template("web", 1, template=GUARDED)]))
    assert VAULT not in find(after, "a").metadata.labels
    known = record_of(find(after, "a"))
    assert known is not None
    assert (known.template, known.adopted) == ("web", True)


def test_a_deleted_template_that_releases_only_disowns_unadopted_nodes() -> None:
    going = template("web", 1, releasePolicy="Release", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    after = apply(seen := snapshot([owned("a", "web"), born("b", "web")], [going]), plan(seen, NOW))
    assert find(after, "a").spec.unschedulable
    assert names.TEMPLATE_LABEL not in find(after, "b").metadata.labels
    assert not find(after, "b").spec.unschedulable
    assert [each.name for each in after.templates] == ["web"]


def test_an_adopted_node_loses_its_role_label_on_release() -> None:
    after, _ = converge(snapshot([born("a", "web")], [template("web", 1)]))
    lowered = SparesSnapshot(after.nodes, [template("web", 0, releasePolicy="Release")])
    released, _ = converge(lowered)
    assert names.role_label("web") not in find(released, "a").metadata.labels


def test_why_says_that_a_node_was_not_adopted() -> None:
    seen = snapshot([owned("a", "web"), born("b", "web")], [template("web", 1)])
    ref = ObjectRef(api_version="v1", kind="Node", name="b")
    [decision] = plan(seen, NOW, [ref]).plan.decisions
    assert decision.rule == "NotAdopted"
    assert [(each.name, each.is_taken, each.reason) for each in decision.candidates] == [("web", False, "NotAdopted")]


# records that a kubelet writes on its own node

FORGED = Record(template="web", labels={names.TEMPLATE_LABEL: "web"})
UNSEALED = [{}, {names.RECORD_DIGEST: ""}, sealed(Record(template="other"))]


@pytest.mark.parametrize("seal", UNSEALED, ids=["none", "empty", "another-record"])
def test_a_record_without_a_valid_digest_gives_no_restricted_label(seal: dict[str, str]) -> None:
    forged = born("a", "web", labels=seal, annotations={names.RECORD: encode(FORGED)})
    after, _ = converge(snapshot([forged], [template("web", 1, template=GUARDED)]))
    assert VAULT not in find(after, "a").metadata.labels
    known = record_of(find(after, "a"))
    assert known is not None
    assert known.adopted


def test_a_record_without_valid_digest_gives_no_membership_above_spec_nodes() -> None:
    forged = born("a", "web", annotations={names.RECORD: encode(FORGED)})
    seen = snapshot([owned("m", "web"), forged], [template("web", 1, releasePolicy="Release")])
    assert reasons(seen) == {}
    assert blocked(seen) == {"NotAdopted": ["a"]}


def test_a_record_that_was_changed_since_does_not_make_an_adopted_node_a_claimed_one() -> None:
    after, _ = converge(snapshot([born("a", "web")], [template("web", 1, template=GUARDED)]))
    node = find(after, "a")
    node.metadata.annotations[names.RECORD] = encode(FORGED)
    again, _ = converge(SparesSnapshot([node], after.templates))
    assert VAULT not in find(again, "a").metadata.labels
    known = record_of(find(again, "a"))
    assert known is not None
    assert known.adopted


@pytest.mark.parametrize(
    "change", [{"prune": True}, {"nodes": 0, "releasePolicy": "Release"}], ids=["prune", "release"]
)
def test_a_forged_record_puts_no_restricted_label_back(change: dict[str, Any]) -> None:
    forged = Record(template="web", labels={VAULT: "low"}, displaced=Displaced(labels={VAULT: "high"}))
    seen, _ = converge(snapshot([spare("a", labels={VAULT: "low"})], [template("web", 1)]))
    node = find(seen, "a")
    node.metadata.annotations[names.RECORD] = encode(forged)
    after, _ = converge(SparesSnapshot([node], [template("web", **{"nodes": 1, **change})]))
    assert find(after, "a").metadata.labels[VAULT] == "low"


def test_a_node_that_is_put_out_of_management_or_released_keeps_no_digest_without_a_record() -> None:
    claimed, _ = converge(snapshot([spare("a")], [template("web", 1)]))
    assert names.RECORD_DIGEST in find(claimed, "a").metadata.labels
    released, _ = converge(SparesSnapshot(claimed.nodes, [template("web", 0, releasePolicy="Release")]))
    assert names.RECORD_DIGEST not in find(released, "a").metadata.labels
    going = template("web", 1, metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    let_go, _ = converge(SparesSnapshot(claimed.nodes, [going]))
    assert names.RECORD_DIGEST not in find(let_go, "a").metadata.labels


def test_long_records_are_not_remembered() -> None:
    """Annotations of 256 KiB must not fill the memory."""
    forged = (spare("a", annotations={names.RECORD: f"{number:0100000d}"}) for number in range(100))

    assert kept_bytes(lambda: [record_of(node) for node in forged]) < 1_000_000
