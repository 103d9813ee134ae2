"""Pools on Cluster API, from the first apply to the last node, on both servers."""

from tests.builders.pools import pool

from nodeyard.capabilities.pools import names


def labels(node):
    return node["metadata"]["labels"]


def taints(node):
    return {(each["key"], each["effect"]) for each in node["spec"].get("taints") or ()}


def test_two_pools_come_up_with_their_labels_and_taints_and_scale_apart(lattice, operator):
    operator("pools")
    gpu = pool(1, labels={"workload-type": "gpu"}, taints=["nvidia.com/gpu:NoSchedule"])
    name = lattice.cluster(lattice.name(), workerPools={"general": pool(2), "gpu": gpu})

    lattice.joined(name, "general", 2)
    (node,) = lattice.joined(name, "gpu", 1)
    assert labels(node)["workload-type"] == "gpu"
    assert labels(node)[names.POOL] == "gpu"
    assert ("nvidia.com/gpu", "NoSchedule") in taints(node)
    status = lattice.ready(name)
    assert (status["phase"], status["workers"], status["readyWorkers"]) == ("Ready", 3, 3)

    lattice.change_pools(name, gpu={"replicas": 3})
    lattice.joined(name, "gpu", 3)
    lattice.change_pools(name, general={"replicas": 1})
    lattice.joined(name, "general", 1)
    lattice.joined(name, "gpu", 3)
