"""Several replicas share the leaves out, and those of one that dies are taken over."""

from __future__ import annotations

import itertools

from tests.builders.woods import hurried

from nodeyard.runtime.apportioning import ranked

HELD = "nodeyard_keys_held"


def words_for(wood, replica, others, count):
    """Of Clusters that this replica should have, which depends on their whole names."""
    words = (f"{replica}{number}" for number in itertools.count())
    theirs = (word for word in words if ranked(wood.named(word), {replica, *others})[0] == replica)
    return list(itertools.islice(theirs, count))


def test_leaves_are_shared_out_and_taken_over_when_a_replica_dies(wood, operator):
    wood.leaves[0].node("a", cpu="1")
    wood.leaves[1].node("b", cpu="2")
    first, second = operator(hurried(), identity="first"), operator(hurried(), identity="second")
    kubeconfigs = [leaf.server.kubeconfig for leaf in wood.leaves]
    words = [*words_for(wood, "first", {"second"}, 2), *words_for(wood, "second", {"first"}, 2)]
    names = [wood.cluster(word, kubeconfig=kubeconfigs[number % 2]) for number, word in enumerate(words)]
    for name in names:
        wood.until_renewed(f"kosmos-{name}")
    wood.until(lambda: (first.metric(HELD), second.metric(HELD)) == (2, 2), "each has its share")

    def connected():
        return [replica.metric("nodeyard_cluster_connected") for replica in (first, second)]

    wood.until(lambda: sum(connected()) >= 4, "all leaves are connected")
    assert connected() == [2, 2], "a replica connects to its own leaves alone"

    second.kill()

    wood.until(lambda: first.metric(HELD) == 4, "the other has them all")
    wood.leaves[0].node("a2", cpu="1")
    wood.leaves[1].node("b2", cpu="1")
    for number, name in enumerate(names):
        wood.until_offers(f"kosmos-{name}", cpu=("2", "3")[number % 2])
        wood.until_renewed(f"kosmos-{name}")
        wood.until_ready(f"kosmos-{name}", "True")
