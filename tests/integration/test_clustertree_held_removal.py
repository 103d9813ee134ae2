"""A Cluster that is being deleted while the brake holds the removal of its nodes."""

from tests.builders.tree_env import node_model, with_fast_lease_loop

from nodeyard.plan.brake import Limit


def test_until_its_nodes_are_deleted_their_leases_and_readiness_follow_the_leaf(tree, operator):
    n1 = tree.leaf.node("n1")
    running = operator(with_fast_lease_loop(), limit=Limit(nodes=0, percent=0))
    east = tree.cluster("east", node_model(n1))
    tree.wait_for_mirrors(east, n1)
    tree.delete(east)
    held = tree.wait_until(lambda: running.held.get(east), "the removal is held")

    tree.leaf.turn(n1, "False")

    tree.wait_for_ready(n1, "False")
    tree.wait_for_renewal(n1)
    tree.leaf.turn(n1, "True")
    tree.wait_for_ready(n1, "True")
    tree.annotate(east, approve=held.id)
    tree.wait_until(lambda: tree.get_cluster(east) is None, "the Cluster is gone")
    tree.wait_until(lambda: tree.get_node(n1) is None and tree.lease(n1) is None, "its node and lease are gone")
