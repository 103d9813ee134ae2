"""Surplus nodes are released to their former state, one recorded step at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.planning.node_patch import release_of
from nodeyard.capabilities.spares.planning.releases import SETTLE
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.kube.drain import DRAIN_LABEL, OVERDUE
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.kube.objects import Condition, Node, NodeStatus, Pod
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.model import Disruption, Planned

from ....builders.nested_json import nested
from ....builders.spares import (
    NOW,
    apply,
    converge,
    described,
    find,
    node,
    owned,
    owner_of,
    pod,
    snapshot,
    spare,
    taint,
    template,
)

DELETING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
WANTED = described(labels={"tier": "web"}, annotations={"for": "bar"}, taints=["dedicated=web:NoSchedule"])


def giving(nodes: int = 0, **spec: Any) -> Any:
    return template("web", nodes, **{"releasePolicy": "Release", "template": WANTED, **spec})


def claimed(*given: Node) -> list[Node]:
    """Return the spares after their claim."""
    return list(converge(snapshot(given, [giving(len(given))]))[0].nodes)


def leaving(pods: list[Pod] | None = None, **spec: Any) -> SparesSnapshot:
    """Return one node just after the cordon."""
    seen = snapshot(claimed(spare("a")), [giving(**spec)], pods or [])
    return apply(seen, plan(seen, NOW))


def reasons(seen: SparesSnapshot, now: Any = NOW) -> list[str]:
    return [action.reason for action in plan(seen, now).plan.actions]


def test_by_default_a_surplus_is_kept() -> None:
    seen = snapshot([owned("a", "web")], [template("web", 0)])
    assert not plan(seen, NOW).plan.actions


def test_the_first_step_cordons_and_says_since_when() -> None:
    planned = plan(snapshot(claimed(spare("a")), [giving()]), NOW)
    [action] = planned.plan.actions
    assert (action.reason, action.disruption) == ("Releasing", Disruption.RELEASES)
    assert planned.write(action).body["spec"] == {"unschedulable": True}


def test_a_cordon_requires_the_observed_version_so_that_a_foreign_one_is_not_recorded() -> None:
    seen = owned("a", "web")
    [write] = plan(snapshot([seen], [giving()]), NOW).writes.values()
    assert write.resource_version == seen.metadata.resource_version != ""


def test_an_empty_node_goes_back_when_the_cordon_has_settled() -> None:
    seen = leaving()
    waiting = plan(seen, NOW)
    assert not waiting.plan.actions
    assert waiting.plan.wake_at == NOW + SETTLE
    assert reasons(seen, NOW + SETTLE) == ["Released"]


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(spare("a", zone="z", labels={"theirs": "1"}), id="spare-as-the-kubelet-made-it"),
        pytest.param(
            spare("a", labels={"tier": "old"}, annotations={"for": "old"}, taints=["dedicated=old:NoSchedule"]),
            id="settings-of-others-in-our-way",
        ),
        pytest.param(spare("a", is_cordoned=True), id="cordoned-by-others"),
        pytest.param(node("a", labels={names.SPARE_LABEL: "true"}), id="spare-by-label-alone"),
        pytest.param(spare("a", labels={names.role_label("web"): ""}), id="role-label-with-another-value"),
        pytest.param(spare("a", taints=[f"{names.SPARE_TAINT}=x:NoExecute"]), id="two-spare-taints"),
    ],
)
def test_a_node_comes_back_as_it_was_before_the_claim(before: Node) -> None:
    after, _ = converge(snapshot(claimed(before), [giving()]))
    back = find(after, "a")
    assert back.metadata.labels == before.metadata.labels
    assert back.metadata.annotations == before.metadata.annotations
    assert set(back.spec.taints) == set(before.spec.taints)
    assert back.spec.unschedulable == before.spec.unschedulable


def test_the_last_step_is_one_patch_bound_to_what_was_seen() -> None:
    planned = plan(leaving(), NOW + SETTLE)
    [action] = planned.plan.actions
    assert planned.write(action).resource_version == "3"


def test_concurrent_foreign_changes_are_kept() -> None:
    [before] = claimed(spare("a"))
    labels = {**before.metadata.labels, "tier": "theirs", "new": "1"}
    changed = node("a", labels=labels, annotations=before.metadata.annotations, taints=["new=1:NoSchedule"])
    # The label that was changed by hand would be put right while the node is kept; here it leaves at once.
    back = find(converge(snapshot([changed], [giving()]))[0], "a")
    assert back.metadata.labels["tier"] == "theirs"
    assert taint("new=1:NoSchedule") in back.spec.taints


def test_pods_are_waited_for() -> None:
    seen = leaving([pod("p", "a")])
    planned = plan(seen, NOW + timedelta(days=1))
    assert not planned.plan.actions
    assert [each.reason for each in planned.plan.blocked] == ["WaitingForPods"]
    assert planned.plan.wake_at is None


def test_pods_are_evicted_when_the_time_is_up_and_not_twice() -> None:
    seen = leaving([pod("p", "a"), pod("q", "a", is_deleting=True)], release={"evictAfterSeconds": 60})
    assert plan(seen, NOW).plan.wake_at == NOW + timedelta(seconds=60)
    [action] = plan(seen, NOW + timedelta(seconds=60)).plan.actions
    assert (action.reason, action.object.name, action.disrupts) == ("Evicted", "p", ("a",))
    assert (action.disruption, action.already_approved) == (Disruption.EVICTS, True)


def test_a_release_that_evicts_later_announces_it_and_is_counted() -> None:
    seen = leaving([pod("p", "a")])
    evicting = SparesSnapshot(seen.nodes, [giving(release={"evictAfterSeconds": 0})], seen.pods)
    planned = plan(evicting, NOW)
    [action] = planned.plan.actions
    assert (action.reason, action.disruption, action.already_approved) == ("Evicting", Disruption.EVICTS, False)
    assert reasons(apply(evicting, planned)) == ["Evicted"]


def test_the_approval_of_a_release_stays_until_its_evictions_are_announced() -> None:
    seen = leaving([pod("p", "a")])
    later = SparesSnapshot(seen.nodes, [giving(release={"evictAfterSeconds": 60})], seen.pods)
    group = "release web uid-web 1"
    assert plan(later, NOW).open_groups == (group,)
    [action] = plan(later, NOW + timedelta(seconds=60)).plan.actions
    assert action.approval_group == group
    assert plan(seen, NOW).open_groups == ()


def held_id(seen: SparesSnapshot) -> str:
    held = brake(plan(seen, NOW).plan, Limit(nodes=0, percent=0), managed=9).held
    assert held is not None
    return held.id


def test_one_approval_is_for_the_whole_release_also_when_part_of_it_is_done() -> None:
    fleet = claimed(spare("a"), spare("b"), spare("c"))
    seen = snapshot(fleet, [giving()])
    begun = apply(seen, first_of(plan(seen, NOW)))
    assert reasons(begun) == ["Releasing", "Releasing"]
    assert held_id(begun) == held_id(seen)
    otherwise = snapshot(fleet, [giving(1)])
    changed = msgspec.structs.replace(otherwise.templates[0].metadata, generation=2)
    otherwise = snapshot(fleet, [msgspec.structs.replace(otherwise.templates[0], metadata=changed)])
    assert held_id(otherwise) != held_id(seen)


def first_of(planned: Planned, count: int = 1) -> Planned:
    only = msgspec.structs.replace(planned.plan, actions=planned.plan.actions[:count])
    return msgspec.structs.replace(planned, plan=only)


def test_an_approval_of_two_releases_holds_when_one_of_them_is_done() -> None:
    fleet = [owned(name, name[:1]) for name in ("a1", "a2", "b1", "b2", "b3")]
    seen = snapshot(fleet, [template(name, 0, releasePolicy="Release") for name in ("a", "b")])
    begun = apply(seen, first_of(plan(seen, NOW), 3))
    left = plan(begun, NOW).plan
    assert [action.object.name for action in left.actions] == ["b2", "b3"]
    assert brake(left, Limit(nodes=1, percent=0), 5, [held_id(seen)]).held is None


def test_no_node_is_released_while_pods_are_unknown() -> None:
    seen = leaving()
    blind = SparesSnapshot(seen.nodes, seen.templates, None)
    planned = plan(blind, NOW + SETTLE)
    assert not planned.plan.actions
    assert [each.reason for each in planned.plan.blocked] == ["PodsUnknown"]


def test_a_node_that_is_wanted_again_is_uncordoned_and_kept() -> None:
    seen = leaving()
    again = SparesSnapshot(seen.nodes, [giving(1)], seen.pods)
    assert reasons(again) == ["ReleaseCancelled"]
    after = find(converge(again)[0], "a")
    assert not after.spec.unschedulable
    assert names.RELEASE not in after.metadata.annotations
    assert owner_of(after) == "web"


@pytest.mark.parametrize("text", ["{", f'{{"x":{nested(5_000)}}}'], ids=["torn", "nested"])
def test_a_malformed_release_note_is_ignored(text: str) -> None:
    assert release_of(spare("a", annotations={names.RELEASE: text})) is None


def test_a_cordon_of_others_is_not_undone() -> None:
    seen = snapshot(claimed(spare("a", is_cordoned=True)), [giving()])
    again = SparesSnapshot(apply(seen, plan(seen, NOW)).nodes, [giving(1)])
    assert find(converge(again)[0], "a").spec.unschedulable


def test_a_node_that_was_uncordoned_by_hand_is_cordoned_again() -> None:
    seen = leaving()
    [before] = seen.nodes
    freed = node("a", labels=before.metadata.labels, annotations=before.metadata.annotations)
    assert reasons(SparesSnapshot([freed], seen.templates), NOW + SETTLE) == ["Releasing"]


def test_scale_down_prefers_nodes_that_are_not_ready_then_empty_then_of_the_crowded_zone_then_by_name() -> None:
    nodes = [
        owned("a1", "web", zone="a"),
        owned("a2", "web", zone="a"),
        owned("a3", "web", zone="a"),
        owned("b1", "web", zone="b"),
        owned("b2", "web", zone="b", is_ready=False),
        owned("c1", "web", zone="c"),
    ]
    pods = [pod(f"p-{name}", name) for name in ("a1", "a2", "a3", "b1")]
    for keep, gone in ((5, ["b2"]), (4, ["b2", "c1"]), (3, ["a1", "b2", "c1"]), (2, ["a1", "a2", "b2", "c1"])):
        planned = plan(snapshot(nodes, [giving(keep, template=described())], pods), NOW)
        assert sorted(each.object.name for each in planned.plan.actions if each.reason == "Releasing") == gone


def test_a_node_that_is_being_deleted_is_one_of_those_too_many() -> None:
    going = owned("c", "web")
    going = msgspec.structs.replace(going, metadata=msgspec.structs.replace(going.metadata, deletion_timestamp=NOW))
    seen = snapshot([owned("a", "web"), owned("b", "web"), going], [giving(2, template=described())])
    assert reasons(seen) == []


def test_a_plan_keeps_its_choice_of_released_nodes() -> None:
    seen = snapshot(claimed(spare("a"), spare("b")), [giving(1)])
    after = apply(seen, plan(seen, NOW))
    worse = [node(each.metadata.name, **_as_given(each), is_ready=each.metadata.name == "a") for each in after.nodes]
    planned = plan(snapshot(worse, after.templates), NOW + SETTLE)
    assert [(each.object.name, each.reason) for each in planned.plan.actions] == [("a", "Released")]


def _as_given(each: Node) -> dict[str, Any]:
    taints = [f"{one.key}={one.value}:{one.effect}" for one in each.spec.taints]
    labels, annotations = each.metadata.labels, each.metadata.annotations
    return {"labels": labels, "annotations": annotations, "taints": taints, "is_cordoned": each.spec.unschedulable}


def test_a_node_without_a_record_goes_back_with_the_usual_taint() -> None:
    after = find(converge(snapshot([owned("a", "web", labels={"x": "y"})], [giving(template=described())]))[0], "a")
    assert after.spec.taints == (taint(f"{names.SPARE_TAINT}=true:NoSchedule"),)
    assert after.metadata.labels == {"x": "y", names.SPARE_LABEL: "true"}


def test_a_deleted_template_with_retain_disowns_its_nodes_and_is_removed() -> None:
    seen = snapshot([owned("a", "web", labels={"x": "y"})], [template("web", metadata=DELETING)])
    node_action, template_action = plan(seen, NOW).plan.actions
    assert (node_action.reason, template_action.reason) == ("Detached", "FinalizerRemoved")
    assert template_action.after == (node_action.id,)
    after = apply(seen, plan(seen, NOW))
    assert not after.templates
    assert find(after, "a").metadata.labels == {"x": "y", names.role_label("web"): "true"}


def test_a_deleted_template_that_releases_stays_until_the_last_node_is_back() -> None:
    seen = snapshot(claimed(spare("a"), spare("b")), [giving(2, metadata=DELETING)])
    assert reasons(seen) == ["Releasing", "Releasing"]
    after, _ = converge(seen)
    assert not after.templates
    assert [owner_of(each) for each in after.nodes] == [None, None]


def test_no_other_node_is_released_in_place_of_one_that_a_pool_drains() -> None:
    drained = owned("c", "web", annotations={POOL_DRAINING: "true"})
    seen = snapshot([owned("a", "web"), owned("b", "web"), drained], [giving(2, template=described())])
    assert reasons(seen) == []
    assert reasons(snapshot(seen.nodes, [giving(1, template=described())])) == ["Releasing"]


@pytest.mark.parametrize("policy", ["Retain", "Release"])
def test_a_deleted_template_disowns_a_node_that_a_pool_drains(policy: str) -> None:
    drained = owned("a", "web", annotations={POOL_DRAINING: "true"})
    seen = snapshot([drained], [template("web", releasePolicy=policy, metadata=DELETING)])
    after = apply(seen, plan(seen, NOW))
    assert owner_of(find(after, "a")) is None
    assert not after.templates


def test_a_release_of_a_deleted_template_is_cancelled() -> None:
    seen = leaving()
    orphaned = SparesSnapshot(seen.nodes, [], seen.pods)
    assert reasons(orphaned) == ["ReleaseCancelled"]
    assert not find(converge(orphaned)[0], "a").spec.unschedulable


# dead nodes


def dead(pods: list[Pod], **spec: Any) -> SparesSnapshot:
    """Return a node being released whose kubelet has stopped reporting."""
    seen = leaving(pods, **spec)
    unreachable = NodeStatus(conditions=(Condition(type="Ready", status="Unknown"),))
    nodes = [msgspec.structs.replace(each, status=unreachable) for each in seen.nodes]
    return SparesSnapshot(nodes, seen.templates, seen.pods)


def test_an_overdue_pod_on_a_dead_node_is_given_up() -> None:
    seen = dead([pod("p", "a", is_deleting=True)])
    waiting = plan(seen, NOW + OVERDUE).plan
    assert not waiting.actions
    assert waiting.wake_at is not None
    assert reasons(seen, NOW + SETTLE) == ["Released"]


def test_a_pod_that_terminates_on_a_living_node_is_waited_for() -> None:
    seen = leaving([pod("p", "a", is_deleting=True)])
    assert not reasons(seen, NOW + timedelta(hours=1))


def test_a_pod_of_a_dead_node_that_nobody_has_deleted_is_waited_for() -> None:
    assert not reasons(dead([pod("p", "a")]), NOW + timedelta(hours=1))


def test_an_eviction_from_a_dead_node_is_due_at_once() -> None:
    planned = plan(dead([pod("p", "a")], release={"evictAfterSeconds": 0}), NOW)
    [action] = planned.plan.actions
    assert planned.write(action).body == {"gracePeriodSeconds": 1}


def test_a_pod_that_asks_to_be_skipped_is_not_waited_for() -> None:
    skipped = pod("p", "a")
    skipped.metadata.labels[DRAIN_LABEL] = "skip"
    assert reasons(leaving([skipped]), NOW + SETTLE) == ["Released"]


def test_the_pods_that_are_waited_for_are_named() -> None:
    seen = leaving([pod("p", "a")])
    [blocked] = plan(seen, NOW + SETTLE).plan.blocked
    assert blocked.facts.text() == "Waiting for pods to leave 1 node (a): default/p on a"
