"""What a role or a selector takes from many nodes is counted as one, though each node is planned by itself."""

from __future__ import annotations

from tests.builders.profile_views import ProfilesView
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
from nodeyard.capabilities.profiles.collecting import collect_node
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.profiles.events import events
from nodeyard.capabilities.profiles.grants import Grants
from nodeyard.capabilities.profiles.plan import plan
from nodeyard.kube.json import Object
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.model import Action

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
    """The deletion that a node's plan comes to."""
    snapshot = collect_node(view, NAMESPACE, name, NOW, Grants())
    assert snapshot is not None
    return next((each for each in plan(snapshot, NOW).plan.actions if each.reason == "ServiceObjectDeleted"), None)


def fleet(*bodies: Object, nodes: int = 4) -> ProfilesView:
    """Nodes without a role, each with its agent."""
    named = [f"n{number}" for number in range(nodes)]
    return ProfilesView(*bodies, *map(node, named), *map(agent, named))


def test_what_a_selector_takes_is_one_undertaking_of_all_nodes_that_lose_it():
    view = fleet(dpdk(OTHER, generation=2))

    found = [deleted(view, f"n{number}") for number in range(4)]

    assert {(each.part_of, each.shared_by) for each in found} == {("remove neutron uid-dpdk 2", 4)}


def test_another_edit_of_the_selector_is_asked_about_anew():
    first, second = (deleted(fleet(dpdk(OTHER, generation=number)), "n0").part_of for number in (2, 3))
    assert first != second


def test_only_those_count_that_nobody_asks_for_any_more():
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

    assert deleted(view, "n0").shared_by == 1
    assert deleted(view, "selected") is None


def test_those_of_a_role_that_a_selector_still_has_do_not_count_for_it():
    kept = [node(f"k{number}", role="edpm-compute") for number in range(3)]
    agents = [agent(name) for name in ("k0", "k1", "k2", "n0")]
    view = ProfilesView(dpdk(RACK), role_body(), *kept, *agents, node("n0", labels=OTHER, role="edpm-compute"))

    assert (deleted(view, "n0").part_of, deleted(view, "n0").shared_by) == ("remove neutron uid-edpm-compute", 1)


def test_a_profile_that_is_gone_takes_no_more_unasked_than_its_selector():
    assert deleted(fleet(), "n0").shared_by == 4


def test_a_compute_that_a_node_without_a_role_gives_up_goes_by_itself():
    compute = compute_body("n0", labels={names.SERVICE_LABEL: names.NOVA})
    assert deleted(ProfilesView(node("n0"), compute), "n0").shared_by == 0


def test_it_is_told_of_and_approved_on_the_profile():
    view = fleet(dpdk(OTHER))
    snapshot = collect_node(view, NAMESPACE, "n0", NOW, Grants())
    braked = brake(plan(snapshot, NOW).plan, Limit(nodes=2, percent=10), PROFILES.managed(snapshot))

    (told,) = (each for each in events(snapshot, braked.now, Outcome()) if each.reason == "NeedsApproval")
    (root,) = PROFILES.wider(view, names.node_key(NAMESPACE, "n0"))

    assert (told.object.kind, told.object.name) == (names.NETWORK_PROFILE_KIND, "dpdk")
    assert (root["kind"], root["metadata"]["name"]) == (names.NETWORK_PROFILE_KIND, "dpdk")
