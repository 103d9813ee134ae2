"""A removal that a role or a selector causes on many nodes is one approval group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.builders.profile_views import INDEXES, ProfilesView
from tests.builders.profiles import (
    NAMESPACE,
    NOW,
    agent_body,
    compute_body,
    network_profile_body,
    node_body,
    role_body,
)

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.collect.nodes import collect_node
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.profiles.plan import plan
from nodeyard.capabilities.profiles.report.events import events
from nodeyard.kube.json import Object
from nodeyard.kube.names import APPROVE, PAUSED
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.identity import group_id
from nodeyard.plan.model import Action, Planned
from nodeyard.runtime.annotations import end_approvals, ref_of

RACK = {"rack": "r1"}
OTHER = {"rack": "r2"}


def dpdk(selector: Object | None = None, **metadata: int) -> Object:
    given = {"spec": {"nodeSelector": selector}} if selector is not None else {}
    return network_profile_body("dpdk", **given, **metadata)


def node(name: str, **given: object) -> Object:
    return node_body(name, **{"role": "", "labels": RACK, **given})


def agent(name: str) -> Object:
    return agent_body(name, labels={names.SERVICE_LABEL: names.NEUTRON, names.NODE_LABEL: name})


def deleted(view: ProfilesView, name: str) -> Action | None:
    """Return the deletion in the plan of a node."""
    snapshot = collect_node(view, NAMESPACE, name, NOW)
    assert snapshot is not None
    return next((each for each in plan(snapshot, NOW).plan.actions if each.reason == "ServiceObjectDeleted"), None)


def fleet(*bodies: Object, nodes: int = 4) -> ProfilesView:
    """Nodes without a role, each with its agent."""
    named = [f"n{number}" for number in range(nodes)]
    return ProfilesView(*bodies, *map(node, named), *map(agent, named))


def test_a_removal_by_selector_is_one_approval_group_of_all_nodes():
    view = fleet(dpdk(OTHER, generation=2))

    found = [deleted(view, f"n{number}") for number in range(4)]

    assert {(each.approval_group, each.group_nodes) for each in found} == {("remove neutron uid-dpdk 2", 4)}


def test_labels_that_change_at_once_are_counted_at_once():
    """Nodes are labelled one by one: the first count must not stand for the others."""
    named = [f"n{number}" for number in range(4)]
    agents = [agent(name) for name in named]
    before = ProfilesView(dpdk(RACK), *agents, node("n0", labels=OTHER), *map(node, named[1:]))
    after = ProfilesView(dpdk(RACK), *agents, *(node(name, labels=OTHER) for name in named))
    after.memo = before.memo

    assert deleted(before, "n0").group_nodes == 1
    assert deleted(after, "n1").group_nodes == 4


def test_another_edit_of_the_selector_needs_another_approval():
    first, second = (deleted(fleet(dpdk(OTHER, generation=number)), "n0").approval_group for number in (2, 3))
    assert first != second


def test_only_unrequested_objects_are_counted():
    others = [
        node("selected"),
        node("chooses", labels=OTHER, annotations={names.NETWORK_PROFILE: "dpdk"}),
        node("opts-out", labels=OTHER, annotations={names.NETWORK_PROFILE: ""}),
        node("bare", labels=OTHER),
        node("has-a-role", labels=OTHER, role="edpm-compute"),
        node("elsewhere", labels=OTHER, namespace="other"),
    ]
    agents = [agent(name) for name in ("selected", "chooses", "opts-out", "has-a-role", "n0")]
    view = ProfilesView(dpdk(RACK), role_body(), *others, *agents, node("n0", labels=OTHER))

    assert deleted(view, "n0").group_nodes == 1
    assert deleted(view, "selected") is None


def test_those_of_a_role_that_a_selector_still_has_do_not_count_for_it():
    kept = [node(f"k{number}", role="edpm-compute") for number in range(3)]
    agents = [agent(name) for name in ("k0", "k1", "k2", "n0")]
    view = ProfilesView(dpdk(RACK), role_body(), *kept, *agents, node("n0", labels=OTHER, role="edpm-compute"))

    assert (deleted(view, "n0").approval_group, deleted(view, "n0").group_nodes) == (
        "remove neutron uid-edpm-compute 1",
        1,
    )


def test_a_deleted_profile_takes_no_more_without_approval_than_its_selector():
    assert deleted(fleet(), "n0").group_nodes == 4


def test_a_removed_compute_of_a_node_without_role_is_not_in_a_group():
    compute = compute_body("n0", labels={names.SERVICE_LABEL: names.NOVA})
    assert deleted(ProfilesView(node("n0"), compute), "n0").group_nodes == 0


def test_it_is_reported_and_approved_on_the_profile():
    view = fleet(dpdk(OTHER))
    snapshot = collect_node(view, NAMESPACE, "n0", NOW)
    braked = brake(plan(snapshot, NOW).plan, Limit(nodes=2, percent=10), PROFILES.managed_nodes(snapshot))

    (told,) = (each for each in events(snapshot, braked.now, Outcome()) if each.reason == "NeedsApproval")
    (root,) = PROFILES.roots.approval(view, names.node_key(NAMESPACE, "n0"))

    assert (told.object.kind, told.object.name) == (names.NETWORK_PROFILE_KIND, "dpdk")
    assert (root["kind"], root["metadata"]["name"]) == (names.NETWORK_PROFILE_KIND, "dpdk")


# approvals on a role


def approved_role(*ids: str, **given: object) -> Object:
    return role_body(annotations={APPROVE: ",".join(ids)}, **given)


def removal(generation: int = 1) -> str:
    return group_id(names.CAPABILITY, f"remove neutron uid-edpm-compute {generation}")


def role_plan(view: ProfilesView) -> Planned:
    return PROFILES.plan(PROFILES.collect(view, f"role/{NAMESPACE}/edpm-compute", NOW), NOW, ())


def ended(view: ProfilesView) -> object:
    """Return the approvals that the pass of the role writes; False if it does not."""
    role = view.get(names.ROLE_KIND, "edpm-compute", NAMESPACE)
    removed = end_approvals([(role, ref_of(role, names.DATAPLANE_API_VERSION, names.ROLE_KIND))], role_plan(view))
    return False if removed is None else next(iter(removed.writes.values())).body["metadata"]["annotations"][APPROVE]


def test_another_generation_of_a_role_needs_another_approval():
    nodes = [node("n0", role="edpm-compute"), agent("n0")]
    first, second = (deleted(ProfilesView(role_body(generation=each), *nodes), "n0").approval_group for each in (1, 2))
    assert first != second


def test_an_approval_on_a_role_stays_while_its_nodes_still_lose_something():
    nodes = [node("n0", role="edpm-compute"), agent("n0")]
    view = ProfilesView(approved_role(removal()), *nodes)
    assert ended(view) is False
    assert role_plan(view).plan.wake_at is not None


def test_an_approval_on_a_role_is_removed_with_its_last_action():
    nodes = [node("n0", role="edpm-compute"), agent("n0")]
    assert ended(ProfilesView(approved_role(removal()), node("n0", role="edpm-compute"))) is None
    assert ended(ProfilesView(approved_role(removal(1), generation=2), *nodes)) is None
    assert ended(ProfilesView(approved_role(removal(1), removal(2), generation=2), *nodes)) == removal(2)
    asked = {APPROVE: removal(), names.NETWORK_PROFILE: "dpdk"}
    assert ended(ProfilesView(role_body(annotations=asked), dpdk(), *nodes)) is None


def test_an_approval_on_a_role_does_not_wait_for_paused_nodes():
    """It would cover the nodes that are moved to the role meanwhile."""
    paused = node("n0", role="edpm-compute", annotations={PAUSED: "true"})
    working = [node("n1", role="edpm-compute"), agent("n1")]
    role = approved_role(removal())
    assert ended(ProfilesView(role, paused, agent("n0"))) is None
    assert ended(ProfilesView(role, paused, agent("n0"), *working)) is False


# the cost of counting


class CountingView(ProfilesView):
    """View that counts the objects it returns in lists."""

    seen = 0

    def all(self, kind: str) -> Sequence[Any]:
        found = super().all(kind)
        self.seen += len(found)
        return found

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]:
        found = [each for each in super().all(kind) if value in INDEXES[kind][index](each)]
        self.seen += len(found)
        return found

    def aggregate(self, name: str, group: str) -> Any:
        before = self.seen
        found = super().aggregate(name, group)
        self.seen = before
        return found

    def counted(self, kind: str, index: str, value: str) -> int:
        before = self.seen
        count = len(self.indexed(kind, index, value))
        self.seen = before
        return count


def objects_seen(nodes: int) -> int:
    """Count the objects read to plan each node of a role that removes their agents."""
    named = [f"n{number}" for number in range(nodes)]
    bodies = [node(name, role="edpm-compute") for name in named]
    view = CountingView(role_body(), *bodies, *map(agent, named))
    for name in named:
        snapshot = collect_node(view, NAMESPACE, name, NOW)
        assert snapshot is not None
        assert snapshot.removals[names.NEUTRON].nodes == nodes
    return view.seen


def test_a_role_removal_is_counted_once_for_all_nodes():
    few, many = objects_seen(10), objects_seen(40)
    assert many <= 5 * few
