"""Replicas shard the leaves; the leaves of a replica that dies are taken over."""

from __future__ import annotations

import itertools

from tests.builders.woods import hurried, party

from nodeyard.runtime.sharding.assignment import rank

HELD = "nodeyard_keys_held"


def words_for(wood, replica, others, count):
    """Words of Clusters that this replica owns; the assignment depends on the full names."""
    words = (f"{replica}{number}" for number in itertools.count())
    theirs = (word for word in words if rank(wood.named(word), {replica, *others})[0] == replica)
    return list(itertools.islice(theirs, count))


def test_leaves_are_shared_out_and_taken_over_when_a_replica_dies(wood, operator):
    """Each leaf is mirrored in part by two Clusters, one of each replica."""
    first, second = operator(hurried(), identity="first"), operator(hurried(), identity="second")
    ours, theirs = words_for(wood, "first", {"second"}, 2), words_for(wood, "second", {"first"}, 3)
    words = [*ours, *theirs[:2]]
    leaves = {word: wood.leaves[number % 2] for number, word in enumerate(words)}
    nodes = {word: f"kosmos-{word}-0" for word in words}
    for word, leaf in leaves.items():
        leaf.node(word, cpu="1", labels={"pool": word})
        wood.cluster(word, party(word), kubeconfig=leaf.server.kubeconfig)
    for node in nodes.values():
        wood.until_renewed(node)
    wood.until(lambda: (first.metric(HELD), second.metric(HELD)) == (2, 2), "each has its share")

    def connected():
        return [replica.metric("nodeyard_cluster_connected") for replica in (first, second)]

    wood.until(lambda: connected() == [2, 2], "a replica connects to its own leaves alone")

    late = wood.cluster(theirs[2], kubeconfig=wood.leaves[0].server.kubeconfig)
    message = wood.until_condition(late, "Ready", "False", "LeafMirroredByAnother")
    assert wood.mirrors(late) == []
    wood.until(lambda: connected() == [2, 3], "each is still connected to its own alone")
    assert any(f"Cluster {wood.named(word)} mirrors the same leaf" in message for word in words)

    second.kill()

    wood.until(lambda: first.metric(HELD) == 5, "the other has them all")
    for word, leaf in leaves.items():
        leaf.node(f"{word}-2", cpu="1", labels={"pool": word})
        wood.until_offers(nodes[word], cpu="2")
        wood.until_renewed(nodes[word])
        wood.until_ready(nodes[word], "True")
