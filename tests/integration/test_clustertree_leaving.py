"""A Cluster that is being deleted while the brake holds the removal of its nodes."""

from tests.builders.woods import hurried, one

from nodeyard.plan.brake import Limit


def test_until_its_nodes_are_deleted_their_leases_and_readiness_follow_the_leaf(wood, operator):
    n1 = wood.leaf.node("n1")
    running = operator(hurried(), limit=Limit(nodes=0, percent=0))
    east = wood.cluster("east", one(n1))
    wood.until_mirrors(east, n1)
    wood.delete(east)
    held = wood.until(lambda: running.held.get(east), "the removal is held")

    wood.leaf.turn(n1, "False")

    wood.until_ready(n1, "False")
    wood.until_renewed(n1)
    wood.leaf.turn(n1, "True")
    wood.until_ready(n1, "True")
    wood.annotate(east, approve=held.id)
    wood.until(lambda: wood.see(east) is None, "the Cluster is gone")
    wood.until(lambda: wood.get(n1) is None and wood.lease(n1) is None, "its node and lease are gone")
