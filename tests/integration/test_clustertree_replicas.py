"""Several replicas share the leaves out, and those of one that dies are taken over."""

from __future__ import annotations

from tests.builders.woods import hurried

HELD = "nodeyard_keys_held"


def test_leaves_are_shared_out_and_taken_over_when_a_replica_dies(wood, operator):
    wood.leaves[0].node("a", cpu="1")
    wood.leaves[1].node("b", cpu="2")
    first, second = operator(hurried(), identity="first"), operator(hurried(), identity="second")
    kubeconfigs = [leaf.server.kubeconfig for leaf in wood.leaves]
    names = [wood.cluster(f"c{number}", kubeconfig=kubeconfigs[number % 2]) for number in range(4)]
    for name in names:
        wood.until_renewed(f"kosmos-{name}")
    wood.until(lambda: (first.metric(HELD), second.metric(HELD)) == (2, 2), "each has its share")
    connected = [replica.metric("nodeyard_cluster_connected") for replica in (first, second)]
    assert connected == [2, 2], "a replica connects to its own leaves alone"

    second.kill()

    wood.until(lambda: first.metric(HELD) == 4, "the other has them all")
    wood.leaves[0].node("a2", cpu="1")
    wood.leaves[1].node("b2", cpu="1")
    for number, name in enumerate(names):
        wood.until_offers(f"kosmos-{name}", cpu=("2", "3")[number % 2])
        wood.until_renewed(f"kosmos-{name}")
        wood.until_ready(f"kosmos-{name}", "True")
