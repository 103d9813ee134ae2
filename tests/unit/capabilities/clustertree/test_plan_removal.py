"""Removal of nodes with their Cluster, in any state of the leaf."""

import msgspec
import pytest

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.inputs import lease_input, node_lease_inputs
from nodeyard.capabilities.clustertree.snapshot import Kubeconfig
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.model import Disruption, Verb

from ....builders.tree_state import (
    NOW,
    TreeState,
    cluster,
    leaf,
    leaf_node,
    left_by_kosmos,
    lost,
    node_model,
    reasons,
    refused,
    root_node,
    settled_state,
    unreached_leaf,
)

DELETED = {"deletionTimestamp": NOW.isoformat()}
ENDINGS = {
    "deleted": {"metadata": DELETED},
    "disabled": {"enable": False},
    "root": {"metadata": {"annotations": {names.CLUSTER_ROLE: names.ROOT}}},
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_all_nodes_go_each_with_its_lease_and_then_the_finalizer(ending):
    tree = settled_state(node_model("n1"), node_model("n2"), nodes=[leaf_node("n1"), leaf_node("n2")])
    tree = tree.with_(cluster=cluster("east", node_model("n1"), node_model("n2"), **ending))

    planned = tree.plan()
    done = tree.after(planned).plan()

    assert reasons(planned) == [
        ("n1", "NodeRemoved"),
        ("n1", "LeaseRemoved"),
        ("n2", "NodeRemoved"),
        ("n2", "LeaseRemoved"),
    ]
    node, lease = planned.plan.actions[:2]
    assert (node.verb, node.disruption, node.approval_group) == (Verb.DELETE, Disruption.DELETES, "remove/uid-east/1")
    assert node.object.uid == "uid-n1"
    assert (lease.object.namespace, lease.after, lease.disruption) == ("kube-node-lease", (node.id,), Disruption.NONE)
    assert reasons(done) == [("east", "FinalizerRemoved")]
    assert done.write(done.plan.actions[0]).body == {"metadata": {"finalizers": []}}
    assert reasons(tree.settled().plan()) == []


@pytest.mark.parametrize(
    "state",
    [
        {"leaf": unreached_leaf(health=lost())},
        {"leaf": leaf(leaf_node("n1"), health=lost(), is_connected=False)},
        {"leaf": unreached_leaf(), "kubeconfig": Kubeconfig(error="not base64")},
        {"leaf": unreached_leaf(), "kubeconfig": Kubeconfig(is_missing=True)},
    ],
    ids=["never reached", "cut off", "broken kubeconfig", "secret gone"],
)
def test_deletion_does_not_need_the_leaf(state):
    tree = settled_state(nodes=[leaf_node("n1")]).with_(cluster=cluster("east", metadata=DELETED), **state)

    gone = tree.settled()

    assert gone.roots == {}
    assert gone.cluster.metadata.finalizers == ()


def test_nodes_of_others_stay_when_a_cluster_is_deleted():
    half = root_node("kosmos-east-2", annotations={"kosmos-io/owned-by-cluster": "east"})
    tree = settled_state(nodes=[leaf_node("n1")]).with_roots(
        root_node("n1"), left_by_kosmos("kosmos-west", "west"), half
    )

    gone = tree.with_(cluster=cluster("east", metadata=DELETED)).settled()

    assert sorted(gone.roots) == ["kosmos-east-2", "kosmos-west", "n1"]


def test_the_finalizer_waits_for_a_node_that_somebody_holds():
    tree = settled_state(nodes=[leaf_node("n1")])
    node = tree.roots["kosmos-east"]
    going = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, deletion_timestamp=NOW))

    planned = tree.with_roots(going).with_(cluster=cluster("east", metadata=DELETED)).plan()

    assert reasons(planned) == []


def test_a_foreign_finalizer_stays():
    own = cluster("east", metadata={**DELETED, "finalizers": ["other", names.FINALIZER]})

    planned = settled_state(nodes=[]).without_root("kosmos-east").with_(cluster=own).plan()

    assert planned.write(planned.plan.actions[0]).body == {"metadata": {"finalizers": ["other"]}}
    assert planned.write(planned.plan.actions[0]).resource_version == "1"


def test_a_removed_model_removes_its_node_even_while_the_leaf_is_unreachable():
    tree = settled_state(node_model("n1"), node_model("n2"), nodes=[leaf_node("n1"), leaf_node("n2")])

    planned = tree.with_(cluster=cluster("east", node_model("n2")), leaf=unreached_leaf(health=lost())).plan()

    assert ("n1", "NodeRemoved") in reasons(planned)
    assert ("n2", "NodeRemoved") not in reasons(planned)


@pytest.mark.parametrize(
    ("kubeconfig", "reason"),
    [
        (Kubeconfig(), "NoKubeconfig"),
        (Kubeconfig(is_given=True, error="users[0].user.exec is not allowed"), "KubeconfigRefused"),
        (Kubeconfig(is_missing=True), "KubeconfigSecretMissing"),
    ],
    ids=["none", "refused", "secret"],
)
def test_a_cluster_with_an_unreachable_leaf_keeps_its_nodes_and_reports_why(kubeconfig, reason):
    planned = settled_state(nodes=[leaf_node("n1")]).with_(kubeconfig=kubeconfig, leaf=unreached_leaf()).plan()

    assert reasons(planned) == []
    assert refused(planned) == [("east", reason)]


def test_a_node_created_by_kosmos_stays_until_the_leaf_is_listed():
    tree = TreeState(cluster("east", node_model("n1")), unreached_leaf()).with_roots(left_by_kosmos("kosmos-east"))
    assert reasons(tree.plan()) == []

    listed = tree.with_(leaf=leaf(leaf_node("n1")))
    assert ("kosmos-east", "NodeRemoved") in reasons(listed.plan())


def test_a_mirror_of_a_deleted_leaf_node_is_unknown_with_zero_resources():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")], resources={"largestFree": True}).with_(leaf=leaf())

    planned = tree.plan()
    held = without_removals(tree, planned)

    status, node, lease = planned.plan.actions
    assert (status.reason, node.reason, lease.reason) == ("ConditionsChanged", "NodeRemoved", "LeaseRemoved")
    assert (status.disruption, node.after) == (Disruption.NONE, (status.id,))
    ready = held.roots["n1"].condition("Ready")
    assert (ready.status, ready.reason) == ("Unknown", "LeafNodeGone")
    assert set(held.roots["n1"].status.allocatable.values()) == {"0"}
    assert names.LARGEST_FREE not in held.roots["n1"].metadata.annotations
    assert [each.is_alive for each in node_lease_inputs(held.snapshot(), held.now)] == [False]
    assert reasons(held.plan()) == [("n1", "NodeRemoved"), ("n1", "LeaseRemoved")]


def test_an_approval_is_for_exactly_the_nodes_that_the_leaf_lost_then():
    names = ("n1", "n2", "n3")
    tree = settled_state(*map(node_model, names), nodes=map(leaf_node, names))
    two_lost, all_lost = tree.with_(leaf=leaf(leaf_node("n3"))), tree.with_(leaf=leaf())

    asked = held_by(two_lost)

    assert held_by(two_lost, approved=asked.id) is None
    assert held_by(two_lost.later(60), approved=asked.id) is None
    assert deleted(held_by(all_lost, approved=asked.id)) == ["n1", "n2", "n3"]


def test_an_approval_for_one_generation_covers_its_removals_but_not_later_losses_of_the_leaf():
    names = ("n1", "n2", "n3", "n4")
    tree = settled_state(*map(node_model, names), nodes=map(leaf_node, names))
    edit = tree.with_(cluster=cluster("east", node_model("n1"), node_model("n2"), metadata={"generation": 2}))

    asked = held_by(edit)

    assert deleted(asked) == ["n3", "n4"]
    assert held_by(edit.without_root("n3"), approved=asked.id) is None
    assert deleted(held_by(edit.with_(leaf=leaf()), approved=asked.id)) == ["n1", "n2"]


def test_a_leaf_node_that_returns_restores_its_pending_mirror():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")])
    held = without_removals(tree.with_(leaf=leaf()), tree.with_(leaf=leaf()).plan())
    assert [each.is_alive for each in node_lease_inputs(held.with_(leaf=unreached_leaf()).snapshot(), held.now)] == [
        False
    ]

    back = held.with_(leaf=leaf(leaf_node("n1"))).settled()

    assert back.roots["n1"].status == tree.roots["n1"].status
    assert [each.is_alive for each in node_lease_inputs(back.snapshot(), back.now)] == [True]


def test_a_node_without_a_model_has_zero_resources_until_it_is_removed():
    """Another model now has its leaf node."""
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")]).with_(cluster=cluster("east"))

    held = without_removals(tree, tree.plan())

    assert {name: node.status.capacity["cpu"] for name, node in held.roots.items()} == {"n1": "0", "kosmos-east": "4"}
    assert held.roots["n1"].condition("Ready").status == "True"
    assert [each.is_alive for each in node_lease_inputs(held.snapshot(), held.now)] == [True, True]


def test_the_lease_of_a_node_that_no_model_asks_for_expires_with_its_leaf_node():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")]).with_(cluster=cluster("east"))
    held = without_removals(tree, tree.plan())

    silent = held.with_(leaf=leaf(leaf_node("n1", ready="Unknown")))
    silent = without_removals(silent, silent.plan())

    ready = silent.roots["n1"].condition("Ready")
    assert (ready.status, ready.reason) == ("Unknown", "LeafNodeSilent")
    assert [(each.name, each.is_alive) for each in node_lease_inputs(silent.snapshot(), silent.now)] == [
        ("kosmos-east", True),
        ("n1", False),
    ]


def test_a_node_that_waits_to_go_is_ready_again_with_its_leaf():
    """Otherwise a short outage would evict pods of held nodes, and each restart would mark the leaf unreachable."""
    nodes = [leaf_node("n1")]
    tree = settled_state(node_model("n1"), nodes=nodes).with_(cluster=cluster("east"))
    held = without_removals(tree, tree.plan())

    down = held.with_(leaf=leaf(*nodes, health=lost()))
    down = without_removals(down, down.plan())
    back = down.with_(leaf=leaf(*nodes))
    back = without_removals(back, back.plan())

    assert {name: node.condition("Ready").status for name, node in down.roots.items()} == {
        "n1": "Unknown",
        "kosmos-east": "Unknown",
    }
    assert {name: node.condition("Ready").status for name, node in back.roots.items()} == {
        "n1": "True",
        "kosmos-east": "True",
    }
    assert not lease_input(back.snapshot(), ()).is_given_up


def held_by(tree, approved=""):
    """The actions that a brake of one node holds."""
    return brake(tree.plan().plan, Limit(nodes=1, percent=0), len(tree.roots), [approved]).held


def deleted(plan):
    return [action.object.name for action in plan.actions if action.reason == "NodeRemoved"]


def without_removals(tree, planned):
    """The tree after a plan whose removals the brake holds."""
    now = brake(planned.plan, Limit(nodes=0, percent=0), len(tree.roots)).now
    return tree.after(msgspec.structs.replace(planned, plan=now))
