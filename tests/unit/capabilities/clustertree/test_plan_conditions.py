"""Conditions of a mirrored node, by the leaf and by the contact with it."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.inputs import node_lease_inputs
from nodeyard.kube.objects import Condition
from nodeyard.plan.brake import Limit, brake

from ....builders.tree_state import (
    NOW,
    alive,
    cluster,
    condition,
    failing,
    leaf,
    leaf_node,
    lease,
    left_by_kosmos,
    lost,
    node_model,
    reasons,
    refused,
    rejecting,
    selector_model,
    settled_state,
    unreached_leaf,
)

THEIRS = Condition(type="Theirs", status="True", last_transition_time=NOW - timedelta(hours=1))


def ready(tree, node="kosmos-east"):
    found = tree.roots[node].condition("Ready")
    return found.status, found.reason


def with_condition(tree, name, added):
    node = tree.roots[name]
    stand = (*(each for each in node.status.conditions if each.type != added.type), added)
    status = msgspec.structs.replace(node.status, conditions=stand)
    return tree.with_roots(msgspec.structs.replace(node, status=status))


@pytest.fixture
def whole():
    return settled_state(nodes=[leaf_node("n1")])


@pytest.fixture
def single():
    return settled_state(node_model("n1"), nodes=[leaf_node("n1")])


def test_a_group_is_ready_while_one_of_its_leaf_nodes_is():
    nodes = [leaf_node("n1", ready="False"), leaf_node("n2")]

    assert ready(settled_state(nodes=nodes)) == ("True", "KubeletReady")


def test_a_group_of_which_none_is_ready_is_not(whole):
    down = whole.with_(leaf=leaf(leaf_node("n1", ready="Unknown"))).settled()

    assert ready(down) == ("False", "LeafNodesNotReady")
    assert down.roots["kosmos-east"].condition("Ready").last_transition_time == down.now


def test_the_node_of_an_empty_leaf_is_not_ready_and_says_why():
    tree = settled_state(nodes=[])

    assert ready(tree) == ("False", "LeafNodesNotReady")
    assert "has no leaf nodes" in tree.roots["kosmos-east"].condition("Ready").message
    assert "offers nothing" in tree.roots["kosmos-east"].condition("Ready").message
    assert tree.roots["kosmos-east"].status.capacity == {}


def test_a_party_that_selects_nothing_yet_is_not_ready():
    tree = settled_state(selector_model("a", pool="a"), nodes=[leaf_node("n1")])

    assert ready(tree, "kosmos-a-0") == ("False", "LeafNodesNotReady")


def test_an_unreachable_leaf_is_unknown_and_nothing_else_changes(whole):
    away = whole.with_(leaf=leaf(leaf_node("n1"), health=lost(), is_connected=False))

    planned = away.plan()

    (action,) = planned.plan.actions
    assert action.reason == "ConditionsChanged"
    assert list(planned.write(action).body) == ["status"]
    after = away.after(planned).roots["kosmos-east"]
    assert (after.condition("Ready").status, after.condition("Ready").reason) == ("Unknown", "LeafUnreachable")
    assert "since 2029-12-31T23:59:30Z" in after.condition("Ready").message
    assert after.condition("MemoryPressure") == whole.roots["kosmos-east"].condition("MemoryPressure")
    assert reasons(away.after(planned).later(60).plan()) == []


def test_conditions_written_by_the_root_stay_until_the_leaf_is_reachable(whole):
    away = whole.with_(leaf=leaf(leaf_node("n1"), health=lost(), is_connected=False)).settled()
    unknown = Condition(type="MemoryPressure", status="Unknown", reason="NodeStatusUnknown")
    away = with_condition(away, "kosmos-east", unknown)
    assert reasons(away.plan()) == []

    back = away.with_(leaf=leaf(leaf_node("n1"), health=alive())).settled()

    assert ready(back) == ("True", "KubeletReady")
    assert back.roots["kosmos-east"].condition("MemoryPressure").status == "False"


@pytest.mark.parametrize("health", [failing(), rejecting()], ids=["failing", "rejecting"])
def test_conditions_are_not_mirrored_while_the_leaf_is_unreachable(single, health):
    planned = single.with_(leaf=leaf(leaf_node("n1", ready="False"), health=health, is_connected=False)).plan()

    assert [each for each in planned.plan.actions if each.reason == "ConditionsChanged"] == []


def test_since_when_credentials_are_rejected_is_noted_on_the_cluster_until_they_are_taken(whole):
    rejected = whole.with_(leaf=leaf(leaf_node("n1"), health=rejecting()))
    assert reasons(rejected.plan()) == [("east", "ClusterAnnotated")]
    noted = rejected.settled()
    assert noted.cluster.metadata.annotations[names.REJECTED_SINCE] == "2030-01-01T00:00:00Z"

    assert reasons(noted.with_(leaf=replace(noted.leaf, health=None)).plan()) == []
    taken = noted.with_(leaf=leaf(leaf_node("n1"))).settled()
    assert names.REJECTED_SINCE not in taken.cluster.metadata.annotations


def test_rejected_credentials_after_the_grace_are_reported_as_such(whole):
    away = whole.with_(leaf=leaf(leaf_node("n1"), health=lost(is_rejected=True))).settled()

    assert ready(away) == ("Unknown", "CredentialsRejected")
    assert "which ended at 2030-01-01T00:00:00Z" in away.roots["kosmos-east"].condition("Ready").message


def test_a_leaf_node_is_mirrored_with_its_conditions_and_their_times(single):
    mirrored = single.roots["n1"].condition("Ready")
    assert mirrored.last_transition_time == NOW - timedelta(days=1)

    down = leaf_node("n1", ready="False", conditions=[condition("KernelDeadlock", "True", at=NOW)])
    tree = single.with_(leaf=leaf(down)).settled()

    assert ready(tree, "n1") == ("False", "KubeletReady")
    assert tree.roots["n1"].condition("KernelDeadlock").last_transition_time == NOW
    assert tree.roots["n1"].metadata.annotations[names.MIRRORED_CONDITIONS] == "KernelDeadlock"


def test_a_condition_is_removed_with_that_of_the_leaf_and_foreign_ones_stay(single):
    known = leaf_node("n1", conditions=[condition("KernelDeadlock", "True")])
    tree = with_condition(single.with_(leaf=leaf(known)).settled(), "n1", THEIRS)

    tree = tree.with_(leaf=leaf(leaf_node("n1"))).settled()

    assert [each.type for each in tree.roots["n1"].status.conditions] == ["Ready", "Theirs"]
    assert names.MIRRORED_CONDITIONS not in tree.roots["n1"].metadata.annotations


def test_foreign_conditions_keep_their_time_and_ours_get_now(whole):
    tree = with_condition(whole, "kosmos-east", THEIRS).with_(leaf=leaf(leaf_node("n1", ready="False")))

    planned = tree.plan()

    write = planned.write(planned.plan.actions[0])
    heard = {each["type"]: each["lastHeartbeatTime"] for each in write.body["status"]["conditions"]}
    assert (heard["Ready"], heard["Theirs"]) == ("2030-01-01T00:00:02Z", "2029-12-31T23:00:00Z")
    assert write.resource_version == tree.roots["kosmos-east"].metadata.resource_version


@pytest.mark.parametrize("status", ["Unknown", None], ids=["unknown", "not there"])
def test_a_leaf_node_that_its_leaf_reports_as_unknown_is_silent(single, status):
    node = leaf_node("n1", ready=status or "True")
    if status is None:
        node = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=()))

    tree = single.with_(leaf=leaf(node)).settled()

    assert ready(tree, "n1") == ("Unknown", "LeafNodeSilent")
    assert [each.is_alive for each in node_lease_inputs(tree.snapshot(), tree.now)] == [False]


def test_a_leaf_node_that_reports_not_ready_is_not_silent(single):
    tree = single.with_(leaf=leaf(leaf_node("n1", ready="False"), leases={"n1": lease(single.now)}))

    assert [each.is_alive for each in node_lease_inputs(tree.snapshot(), tree.now)] == [True]


def test_an_expired_lease_makes_a_leaf_node_silent_at_that_moment(single):
    tree = single.with_(leaf=leaf(leaf_node("n1"), leases={"n1": lease(NOW)}))

    assert tree.plan().plan.wake_at == NOW + timedelta(seconds=50)
    silent = tree.with_(now=NOW + timedelta(seconds=50))
    assert silent.plan().plan.wake_at == NOW + timedelta(seconds=60)
    assert ready(silent.settled(), "n1") == ("Unknown", "LeafNodeSilent")


def test_the_leafs_clock_counts_for_its_leases(single):
    ahead = alive(skew_seconds=45.0)
    tree = single.with_(leaf=leaf(leaf_node("n1"), leases={"n1": lease(NOW)}, health=ahead))

    assert [each.is_alive for each in node_lease_inputs(tree.snapshot(), NOW + timedelta(seconds=4))] == [True]
    assert [each.is_alive for each in node_lease_inputs(tree.snapshot(), NOW + timedelta(seconds=5))] == [False]


def test_an_expired_lease_means_nothing_while_leases_are_not_watched(single):
    old = {"n1": lease(NOW - timedelta(hours=1))}
    unheard_of = single.with_(leaf=leaf(leaf_node("n1"), leases=old, is_leased=False))
    assert reasons(unheard_of.plan()) == []
    assert [each.is_alive for each in node_lease_inputs(unheard_of.snapshot(), unheard_of.now)] == [True]

    silent = single.with_(leaf=leaf(leaf_node("n1"), leases=old)).settled()
    still = silent.with_(leaf=leaf(leaf_node("n1"), leases=old, is_leased=False))

    assert ready(still.settled(), "n1") == ("Unknown", "LeafNodeSilent")
    assert [each.is_alive for each in node_lease_inputs(still.snapshot(), still.now)] == [False]


def test_an_expired_lease_means_nothing_while_the_leaf_is_unreachable(single):
    blind = single.with_(leaf=leaf(leaf_node("n1"), leases={"n1": lease(NOW)}, is_connected=False)).later(3600)

    assert reasons(blind.plan()) == []
    assert [each.is_alive for each in node_lease_inputs(blind.snapshot(), blind.now)] == [True]


def test_a_lease_cached_before_a_disconnect_makes_no_node_silent_before_it_could_be_updated(single):
    back = single.now + timedelta(hours=1)
    old = {"n1": lease(single.now)}
    seen = single.with_(leaf=leaf(leaf_node("n1"), leases=old, connected_at=back), now=back)
    assert reasons(seen.plan()) == []
    assert [each.is_alive for each in node_lease_inputs(seen.snapshot(), seen.now)] == [True]
    assert seen.plan().plan.wake_at == back + timedelta(seconds=10)

    heard = seen.with_(leaf=leaf(leaf_node("n1"), leases={"n1": lease(back)}, connected_at=back)).later(10)
    assert reasons(heard.plan()) == []
    assert ready(seen.later(10).settled(), "n1") == ("Unknown", "LeafNodeSilent")


def test_a_silent_node_stays_silent_while_the_leaf_is_not_seen(single):
    silent = single.with_(leaf=leaf(leaf_node("n1", ready="Unknown"))).settled()

    blind = silent.with_(leaf=leaf(leaf_node("n1", ready="Unknown"), is_connected=False))

    assert reasons(blind.plan()) == []
    assert [each.is_alive for each in node_lease_inputs(blind.snapshot(), blind.now)] == [False]


def test_a_leaf_that_was_never_reached_gets_no_nodes():
    planned = settled_state(nodes=[]).without_root("kosmos-east").with_(leaf=unreached_leaf()).plan()

    assert reasons(planned) == []
    assert refused(planned) == [("east", "NotContacted")]


def test_after_a_restart_nodes_of_a_leaf_that_is_down_stay_but_for_their_readiness(single):
    down = single.with_(leaf=unreached_leaf(health=lost())).settled()

    assert ready(down, "n1") == ("Unknown", "LeafUnreachable")
    assert down.roots["n1"].status.capacity == single.roots["n1"].status.capacity
    assert down.roots["n1"].metadata.labels == single.roots["n1"].metadata.labels


@pytest.mark.parametrize("is_rejected", [False, True], ids=["unreachable", "rejected"])
def test_a_new_owner_keeps_the_conditions_of_a_lost_leaf(whole, is_rejected):
    """A replica that took over and did not see when contact was lost."""
    down = whole.with_(leaf=leaf(leaf_node("n1"), health=lost(is_rejected=is_rejected))).settled()
    said = down.roots["kosmos-east"].condition("Ready").message
    assert "2030-01-01T00:00:00Z" in said or "2029-12-31T23:59:30Z" in said
    later = NOW + timedelta(hours=1)
    newly = replace(lost(later, is_rejected=is_rejected), last_contact=later if is_rejected else None)

    for state in (leaf(leaf_node("n1"), health=newly), unreached_leaf(health=newly)):
        assert reasons(down.with_(leaf=state).plan()) == []


def test_a_contact_in_between_is_reported(whole):
    down = whole.with_(leaf=leaf(leaf_node("n1"), health=lost())).settled()
    again = down.with_(leaf=leaf(leaf_node("n1"), health=lost(NOW + timedelta(hours=1)))).settled()

    assert "has not responded since 2030-01-01T00:59:30Z" in again.roots["kosmos-east"].condition("Ready").message


@pytest.mark.parametrize("is_rejected", [False, True], ids=["unreachable", "rejected"])
def test_a_leaf_that_was_given_up_is_not_brought_back_by_a_first_list_but_by_its_probes(whole, is_rejected):
    down = whole.with_(leaf=leaf(leaf_node("n1"), health=lost(is_rejected=is_rejected))).settled()
    listed = down.with_(leaf=replace(leaf(leaf_node("n1")), health=None))

    assert ready(listed.settled()) == ready(down)
    assert ready(listed.with_(leaf=leaf(leaf_node("n1"))).settled()) == ("True", "KubeletReady")


PAUSE = {"annotations": {"nodeyard.dev/paused": "true"}}
UNKNOWN_TO_ALL = Condition(type="Ready", status="Unknown", reason="NodeStatusUnknown", last_transition_time=NOW)
LEFT_ALONE = {
    "faulty model": {"cluster": cluster("east", node_model("n1", labels={"no key": ""}))},
    "another Cluster's": {"earlier_clusters": (cluster("west"),)},
    "group of a faulty model": {"cluster": cluster("east", selector_model("gpu", pool="gpu", labels={"no key": ""}))},
    "paused": {"cluster": cluster("east", node_model("n1"), metadata=PAUSE)},
    "group, paused": {"cluster": cluster("east", selector_model("gpu", pool="gpu"), metadata=PAUSE)},
    "paused and switched off": {"cluster": cluster("east", node_model("n1"), metadata=PAUSE, enable=False)},
}


def left_alone(how):
    model = selector_model("gpu", pool="gpu") if how.startswith("group") else node_model("n1")
    tree = settled_state(model, nodes=[leaf_node("n1", pool="gpu")])
    return tree.with_(**LEFT_ALONE[how]).settled(), next(iter(tree.roots))


@pytest.mark.parametrize("how", LEFT_ALONE)
def test_a_node_that_is_left_as_it_is_becomes_ready_again_with_its_leaf(how):
    tree, name = left_alone(how)
    before = tree.roots[name].condition("Ready")

    down = tree.with_(leaf=leaf(*tree.leaf.nodes.values(), health=lost())).settled()
    back = down.with_(leaf=tree.leaf).settled()

    assert ready(down, name) == ("Unknown", "LeafUnreachable")
    assert ready(back, name) == (before.status, before.reason) == ("True", "KubeletReady")


@pytest.mark.parametrize("how", LEFT_ALONE)
def test_a_blocked_node_becomes_ready_again_after_the_root_marked_it_unknown(how):
    """The operator was down, and its lease was not renewed for a while."""
    tree, name = left_alone(how)

    assert ready(with_condition(tree, name, UNKNOWN_TO_ALL).settled(), name) == ("True", "KubeletReady")


@pytest.mark.parametrize("how", LEFT_ALONE)
def test_a_blocked_node_follows_only_the_readiness_of_its_leaf_node(how):
    tree, name = left_alone(how)
    busy = leaf(leaf_node("n1", ready="False", pool="gpu", rack="r1", cpu="1"))

    down = tree.with_(leaf=busy).settled()

    assert ready(down, name)[0] == "False"
    before, after = tree.roots[name], down.roots[name]
    assert (after.metadata.labels, after.spec) == (before.metadata.labels, before.spec)
    assert (after.status.allocatable, after.status.capacity) == (before.status.allocatable, before.status.capacity)


@pytest.mark.parametrize("how", [each for each in LEFT_ALONE if not each.startswith("group")])
def test_a_node_that_is_left_as_it_is_is_unknown_with_its_leaf_node(how):
    tree, name = left_alone(how)

    silent = tree.with_(leaf=leaf(leaf_node("n1", ready="Unknown", pool="gpu")))

    assert ready(silent.settled(), name) == ("Unknown", "LeafNodeSilent")


@pytest.mark.parametrize("ending", [{"enable": False}, {"metadata": {"deletionTimestamp": NOW.isoformat()}}])
def test_a_node_whose_removal_is_held_follows_its_leaf_node(ending):
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")]).with_(
        cluster=cluster("east", node_model("n1"), **ending)
    )

    def held(tree):
        planned = tree.plan()
        return planned, brake(planned.plan, Limit(nodes=0, percent=0), managed=1)

    def after(tree):
        planned, braked = held(tree)
        return tree.after(msgspec.structs.replace(planned, plan=braked.now))

    down = after(tree.with_(leaf=leaf(leaf_node("n1", ready="False"))))
    back = after(down.with_(leaf=leaf(leaf_node("n1"))))

    assert ready(down, "n1")[0] == "False"
    assert ready(back, "n1")[0] == "True"
    assert [each.reason for each in held(back)[1].held.actions] == ["NodeRemoved", "LeaseRemoved"]


def test_the_lease_of_a_leaf_node_is_looked_at_again_in_a_pause():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")]).with_(
        cluster=cluster("east", node_model("n1"), metadata=PAUSE)
    )
    leased = tree.with_(leaf=leaf(leaf_node("n1"), leases={"n1": lease(NOW)}))

    assert leased.plan().plan.wake_at == NOW + timedelta(seconds=50)


def test_a_node_deleted_while_the_leaf_is_unreachable_is_recreated_as_unknown(whole):
    away = whole.with_(leaf=leaf(leaf_node("n1"), health=lost(), is_connected=False)).without_root("kosmos-east")

    assert ready(away.settled()) == ("Unknown", "LeafUnreachable")


def test_leases_of_our_nodes_are_renewed_while_paused_and_before_removal(whole):
    other = left_by_kosmos("kosmos-west", "west")
    tree = whole.with_roots(other)
    for changed in (cluster("east", metadata={"annotations": {"nodeyard.dev/paused": "true"}}), cluster(enable=False)):
        known = node_lease_inputs(tree.with_(cluster=changed).snapshot(), tree.now)
        assert [tuple(each) for each in known] == [("kosmos-east", "uid-kosmos-east", True, True)]
