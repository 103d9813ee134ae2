"""Pools on Cluster API, from the first apply to the last node, on both servers."""

from tests.builders.pools import pool
from tests.builders.pools_env import CLUSTERS, History

from nodeyard.capabilities.pools import names


def labels(node):
    return node["metadata"]["labels"]


def taints(node):
    return {(each["key"], each["effect"]) for each in node["spec"].get("taints") or ()}


def is_as_told(cluster):
    """Return True if the cluster is not Ready for its current generation, or has all its nodes."""
    status, wanted = cluster.get("status") or {}, cluster["spec"]["nodes"]["workerPools"]
    ready = next((each for each in status.get("conditions") or () if each["type"] == "Ready"), {})
    if ready.get("status") != "True" or ready["observedGeneration"] < cluster["metadata"]["generation"]:
        return True
    pools = status["workerPools"]
    return {id: each["ready"] for id, each in pools.items()} == {id: each["replicas"] for id, each in wanted.items()}


def test_two_pools_get_their_labels_and_taints_and_scale_independently(own_pools_env, operator):
    running, history = operator("pools"), History(own_pools_env, CLUSTERS)
    gpu = pool(1, labels={"workload-type": "gpu"}, taints=["nvidia.com/gpu:NoSchedule"])
    name = own_pools_env.cluster(own_pools_env.name(), workerPools={"general": pool(2), "gpu": gpu})

    own_pools_env.wait_for_nodes(name, "general", 2)
    (node,) = own_pools_env.wait_for_nodes(name, "gpu", 1)
    assert labels(node)["workload-type"] == "gpu"
    assert labels(node)[names.POOL] == "gpu"
    assert ("nvidia.com/gpu", "NoSchedule") in taints(node)
    status = own_pools_env.wait_until_ready(name)
    assert (status["phase"], status["workers"], status["readyWorkers"]) == ("Ready", 3, 3)

    own_pools_env.change_pools(name, gpu={"replicas": 3})
    own_pools_env.wait_for_nodes(name, "gpu", 3)
    own_pools_env.change_pools(name, general={"replicas": 1})
    own_pools_env.wait_for_nodes(name, "general", 1)
    own_pools_env.wait_for_nodes(name, "gpu", 3)
    own_pools_env.wait_until(
        lambda: running.metric("nodeyard_pool_ready", cluster=name, pool="gpu") == 3, "it is measured"
    )
    assert running.metric("nodeyard_pool_desired", cluster=name) == 4
    assert all(is_as_told(event["object"]) for event in history.events())
