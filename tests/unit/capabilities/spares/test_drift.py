"""Drift of a template's nodes is repaired; settings of others stay."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Disruption

from ....builders.nested_json import nested
from ....builders.spares import (
    NOW,
    apply,
    converge,
    described,
    find,
    node,
    owned,
    snapshot,
    spare,
    taint,
    template,
)

WANTED = described(labels={"tier": "web"}, annotations={"for": "bar"}, taints=["dedicated=web:NoSchedule"])


def repaired(given: Node, **spec: Any) -> Node:
    """Return the node after the plan of a template with WANTED."""
    seen = snapshot([given], [template("web", **{"template": WANTED, **spec})])
    return find(apply(seen, plan(seen, NOW)), given.metadata.name)


def retemplated(seen: SparesSnapshot, **spec: Any) -> SparesSnapshot:
    return SparesSnapshot(seen.nodes, [template("web", **spec)], seen.pods)


def claimed(given: Node | None = None) -> SparesSnapshot:
    return converge(snapshot([given or spare("a")], [template("web", template=WANTED)]))[0]


def test_lost_metadata_is_restored() -> None:
    after = repaired(owned("a", "web"))
    assert after.metadata.labels["tier"] == "web"
    assert after.metadata.annotations["for"] == "bar"
    assert after.spec.taints == (taint("dedicated=web:NoSchedule"),)


@pytest.mark.parametrize(
    ("present", "wanted", "disruption"),
    [
        ([], "dedicated=web:NoSchedule", Disruption.NONE),
        ([], "dedicated=web:NoExecute", Disruption.EVICTS),
        (["dedicated=db:NoExecute"], "dedicated=web:NoExecute", Disruption.EVICTS),
        (["dedicated=web:NoSchedule"], "dedicated=web:NoExecute", Disruption.EVICTS),
    ],
)
def test_a_taint_that_evicts_counts_as_disruption(present: list[str], wanted: str, disruption: Disruption) -> None:
    seen = snapshot([owned("a", "web", taints=present)], [template("web", template=described(taints=[wanted]))])
    (action,) = plan(seen, NOW).plan.actions
    assert action.disruption is disruption


def test_a_claim_is_harmless_though_its_taint_evicts() -> None:
    seen = snapshot([spare("a")], [template("web", template=described(taints=["dedicated=web:NoExecute"]))])
    (action,) = plan(seen, NOW).plan.actions
    assert action.disruption is Disruption.NONE


def test_hand_edits_are_reverted() -> None:
    after = repaired(owned("a", "web", labels={"tier": "db"}, taints=["dedicated=db:NoSchedule"]))
    assert after.metadata.labels["tier"] == "web"
    assert after.spec.taints == (taint("dedicated=web:NoSchedule"),)


def test_a_taint_of_the_same_key_with_another_effect_is_foreign() -> None:
    after = repaired(owned("a", "web", taints=["dedicated=db:NoExecute"]))
    assert after.spec.taints == (taint("dedicated=db:NoExecute"), taint("dedicated=web:NoSchedule"))


def test_the_spare_taint_does_not_give_a_node_back() -> None:
    after = repaired(owned("a", "web", taints=[f"{names.SPARE_TAINT}:NoSchedule"], labels={names.SPARE_LABEL: "true"}))
    assert after.spec.taints == (taint("dedicated=web:NoSchedule"),)
    assert names.SPARE_LABEL not in after.metadata.labels


def test_settings_of_others_stay() -> None:
    after = repaired(owned("a", "web", labels={"theirs": "1"}, taints=["theirs=1:NoSchedule"]))
    assert after.metadata.labels["theirs"] == "1"
    assert taint("theirs=1:NoSchedule") in after.spec.taints


def test_a_node_that_is_as_described_is_not_written() -> None:
    seen = claimed()
    assert not plan(seen, NOW).plan.actions


def test_a_node_adopted_as_described_is_not_written_again() -> None:
    given = owned("a", "web", labels={"tier": "web"}, annotations={"for": "bar"}, taints=["dedicated=web:NoSchedule"])
    assert not plan(snapshot([given], [template("web", template=WANTED)]), NOW).plan.actions


def test_labels_alone_are_patched_without_a_precondition() -> None:
    given = owned("a", "web", labels={"tier": "db"})
    planned = plan(snapshot([given], [template("web", template=described(labels={"tier": "web"}))]), NOW)
    [action] = planned.plan.actions
    assert planned.write(action).resource_version == ""
    assert "spec" not in planned.write(action).body


def test_a_node_that_a_pool_drains_is_left_alone() -> None:
    given = owned("a", "web", annotations={POOL_DRAINING: "true"})
    planned = plan(snapshot([given], [template("web", template=WANTED)]), NOW)
    assert not planned.plan.actions
    assert [each.reason for each in planned.plan.blocked] == ["OwnedElsewhere"]


def test_nothing_is_removed_without_prune() -> None:
    seen = retemplated(claimed(), template=described())
    assert not plan(seen, NOW).plan.actions


def test_prune_removes_our_keys_that_the_template_dropped() -> None:
    seen = retemplated(claimed(), template=described(), prune=True)
    after, _ = converge(seen)
    left = find(after, "a")
    assert "tier" not in left.metadata.labels
    assert "for" not in left.metadata.annotations
    assert left.spec.taints == ()
    assert left.metadata.labels[names.TEMPLATE_LABEL] == "web"


def test_prune_puts_back_what_we_displaced() -> None:
    seen = claimed(spare("a", labels={"tier": "before"}, taints=["dedicated=before:NoSchedule"]))
    after, _ = converge(retemplated(seen, template=described(), prune=True))
    assert find(after, "a").metadata.labels["tier"] == "before"
    assert find(after, "a").spec.taints == (taint("dedicated=before:NoSchedule"),)


def test_prune_restores_earlier_values_of_the_node() -> None:
    seen = claimed(spare("a", labels={"tier": "web"}))
    after, _ = converge(retemplated(seen, template=described(), prune=True))
    assert find(after, "a").metadata.labels["tier"] == "web"


def test_prune_keeps_values_changed_by_others() -> None:
    before = find(claimed(), "a")
    labels = {**before.metadata.labels, "tier": "theirs"}
    changed = node("a", labels=labels, annotations=before.metadata.annotations)
    after, _ = converge(snapshot([changed], [template("web", template=described(), prune=True)]))
    assert find(after, "a").metadata.labels["tier"] == "theirs"


def test_an_edited_template_keeps_the_memory_of_what_was_displaced_first() -> None:
    seen = claimed(spare("a", labels={"tier": "before"}))
    edited, _ = converge(retemplated(seen, template=described(labels={"tier": "web2"})))
    assert find(edited, "a").metadata.labels["tier"] == "web2"
    after, _ = converge(retemplated(edited, template=described(), prune=True))
    assert find(after, "a").metadata.labels["tier"] == "before"


@pytest.mark.parametrize("text", ["{", f'{{"x":{nested(5_000)}}}'], ids=["torn", "nested"])
def test_a_malformed_record_is_no_record(text: str) -> None:
    given = owned("a", "web", labels={"tier": "web"}, annotations={names.RECORD: text})
    seen = snapshot([given], [template("web", template=described(), prune=True)])
    assert find(converge(seen)[0], "a").metadata.labels["tier"] == "web"
