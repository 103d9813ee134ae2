"""Replicas shard the leaves; the leaves of a replica that dies are taken over."""

from __future__ import annotations

import itertools

from tests.builders.tree_env import selector_model, with_fast_lease_loop

from nodeyard.runtime.sharding.assignment import rank

HELD = "nodeyard_keys_held"


def words_for(tree, replica, others, count):
    """Words of Clusters that this replica owns; the assignment depends on the full names."""
    words = (f"{replica}{number}" for number in itertools.count())
    theirs = (word for word in words if rank(tree.unique_name(word), {replica, *others})[0] == replica)
    return list(itertools.islice(theirs, count))


def test_leaves_are_sharded_and_taken_over_when_a_replica_dies(tree, operator):
    """Each leaf is mirrored in part by two Clusters, one of each replica."""
    first, second = (
        operator(with_fast_lease_loop(), identity="first"),
        operator(with_fast_lease_loop(), identity="second"),
    )
    ours, theirs = words_for(tree, "first", {"second"}, 2), words_for(tree, "second", {"first"}, 3)
    words = [*ours, *theirs[:2]]
    leaves = {word: tree.leaves[number % 2] for number, word in enumerate(words)}
    nodes = {word: f"kosmos-{word}-0" for word in words}
    for word, leaf in leaves.items():
        leaf.node(word, cpu="1", labels={"pool": word})
        tree.cluster(word, selector_model(word), kubeconfig=leaf.server.kubeconfig)
    for node in nodes.values():
        tree.wait_for_renewal(node)
    tree.wait_until(lambda: (first.metric(HELD), second.metric(HELD)) == (2, 2), "each has its share")

    def connected():
        return [replica.metric("nodeyard_cluster_connected") for replica in (first, second)]

    tree.wait_until(lambda: connected() == [2, 2], "a replica connects to its own leaves alone")

    late = tree.cluster(theirs[2], kubeconfig=tree.leaves[0].server.kubeconfig)
    message = tree.wait_for_condition(late, "Ready", "False", "LeafMirroredByAnother")
    assert tree.mirrors(late) == []
    tree.wait_until(lambda: connected() == [2, 3], "each is still connected to its own alone")
    assert any(f"Cluster {tree.unique_name(word)} mirrors the same leaf" in message for word in words)

    second.kill()

    tree.wait_until(lambda: first.metric(HELD) == 5, "the other has them all")
    for word, leaf in leaves.items():
        leaf.node(f"{word}-2", cpu="1", labels={"pool": word})
        tree.wait_for_allocatable(nodes[word], cpu="2")
        tree.wait_for_renewal(nodes[word])
        tree.wait_for_ready(nodes[word], "True")
