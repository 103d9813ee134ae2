"""A cluster with pivot Never: its nodes are drained on the workload cluster, its objects are deleted here."""

import pytest
from tests.builders.pools import pool
from tests.builders.pools_env import CLUSTERS, History

from nodeyard.capabilities.pools import names
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.machines import BUDGETS, PODS
from nodeyard.testing.session import MERGE

BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "far", "namespace": "default"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "far"}}},
}


def pod(node):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "far", "namespace": "default", "labels": {"app": "far"}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "sim"}],
        },
    }


def guard(rest, node, until):
    """Create a pod on a node, with a PodDisruptionBudget that blocks its eviction."""
    rest.create(pod(node))
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    rest.call("PATCH", f"{PODS}/far/status", running, content_type=MERGE)
    rest.create(BUDGET)
    until(lambda: (rest.get(f"{BUDGETS}/far").get("status") or {}).get("currentHealthy") == 1, "the budget is in force")


@pytest.fixture(scope="module")
def workload():
    """The workload cluster."""
    with EmbeddedServer() as server:
        yield server


@pytest.fixture(scope="module")
def kept(pools_env, workload):
    """A cluster with two pools whose kubeconfig points to the workload cluster."""
    given = {"stays": pool(1), "leaves": pool(1)}
    name = pools_env.cluster(pools_env.name("far"), pivot="Never", poolDrainTimeout=2, workerPools=given)
    for each in given:
        for node in pools_env.wait_for_nodes(name, each, 1):
            workload.rest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["metadata"]["name"]}})
    pools_env.set_kubeconfig(name, workload.config)
    return name


def test_a_cluster_that_is_to_manage_itself_has_no_workers_before_its_pivot(api, pools_env, workload):
    name = pools_env.name("self")
    pools_env.rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.namespace(name)}})
    pools_env.set_kubeconfig(name, workload.config)
    pools_env.cluster(name, workers=2)
    pools_env.machines.wait_until_initialized(name)
    status = pools_env.wait_for_condition(name, "Provisioned", "False", "NotPivoted")
    pools_env.wait_until(lambda: pools_env.status(name)["phase"] == "Pivoting", "its control plane runs")
    assert (status["pivoted"], pools_env.replicas(name, "default")) == (False, 0)

    pools_env.set_kubeconfig(name, api.config)

    pools_env.wait_until(lambda: pools_env.replicas(name, "default") == 2, "workers start after the pivot")
    pools_env.wait_until(lambda: pools_env.status(name)["pivoted"], "the status says so")


def test_a_cluster_that_was_moved_to_another_management_cluster_is_not_made_a_second_time(pools_env):
    name = pools_env.cluster(pools_env.name("moved"))
    pools_env.machines.wait_until_initialized(name)
    path = pools_env.path(name, "clusters", name)
    uid = pools_env.rest.get(path)["metadata"]["uid"]

    def noted():
        return pools_env.get(name)["metadata"]["annotations"].get(names.CLUSTER_UID) == uid

    pools_env.wait_until(noted, "it is noted that it has come up")
    pools_env.pause(name, is_on=True)
    pools_env.move_away(name)

    pools_env.wait_for_condition(name, "Ready", "False", "ClusterGone")
    assert not pools_env.exists(path)
    assert names.CLUSTER_UID in pools_env.condition(name, "Ready")["message"]
    pools_env.delete(name)
    pools_env.wait_until(lambda: not pools_env.exists(f"{CLUSTERS}/{name}"), "it can be deleted")


def test_workers_start_without_a_pivot(pools_env, kept):
    pools_env.wait_until(lambda: pools_env.status(kept).get("pivoted") is False, "it is known to be another cluster")
    assert pools_env.status(kept)["phase"] == "Ready"


def test_a_pool_is_drained_through_the_secret_and_nothing_here_is_touched(pools_env, kept, workload):
    pools_env.wait_until(lambda: pools_env.status(kept).get("pivoted") is False, "it is known to be another cluster")
    (here,) = pools_env.nodes_of(kept, "leaves")
    node = here["metadata"]["name"]
    (nearby,) = pools_env.machines.add_pods(here, 1, app="near")
    guard(workload.rest, node, pools_env.wait_until)
    pools_env.change_pools(kept, leaves=None)

    pools_env.wait_for_condition(kept, "PoolsDrained", "False", "DrainTimeout")

    def refused():
        return [each for each in pools_env.pool(kept, "leaves").get("blockingPods", ()) if each["message"]]

    (blocking,) = pools_env.wait_until(refused, "the eviction is refused")
    assert (blocking["pod"], blocking["node"]) == ("default/far", node)
    assert "The disruption budget far" in blocking["message"]
    there = workload.rest.get(f"/api/v1/nodes/{node}")
    assert there["spec"]["unschedulable"]
    assert there["metadata"]["annotations"][names.CORDONED_BY] == f"{kept}/leaves"
    assert not pools_env.node(node)["spec"].get("unschedulable")
    assert [each["metadata"]["name"] for each in pools_env.machines.pods("near")] == [nearby]

    workload.rest.call("DELETE", f"{BUDGETS}/far")
    pools_env.wait_until(lambda: workload.rest.status(f"{PODS}/far") == 404, "the pod is evicted")
    pools_env.delete_workload("near")
    pools_env.wait_until_removed(kept, "leaves")


def test_its_deletion_takes_the_cluster_then_the_namespace_then_itself(pools_env, kept):
    clusters = History(pools_env, pools_env.path(kept, "clusters"))
    namespaces, itself = History(pools_env, "/api/v1/namespaces"), History(pools_env, CLUSTERS)

    pools_env.delete(kept)

    pools_env.wait_until(lambda: not pools_env.exists(f"{CLUSTERS}/{kept}"), "it is gone")
    namespace = namespaces.deletion(names.namespace(kept))
    assert clusters.deletion(kept) < namespace < itself.deletion(kept)
