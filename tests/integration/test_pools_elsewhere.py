"""A cluster with pivot Never: its nodes are drained on the workload cluster, its objects are deleted here."""

import pytest
from tests.builders.lattices import CLUSTERS, History
from tests.builders.pools import pool

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
def kept(lattices, workload):
    """A cluster with two pools whose kubeconfig points to the workload cluster."""
    given = {"stays": pool(1), "leaves": pool(1)}
    name = lattices.cluster(lattices.name("far"), pivot="Never", poolDrainTimeout=2, workerPools=given)
    for each in given:
        for node in lattices.joined(name, each, 1):
            workload.rest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["metadata"]["name"]}})
    lattices.lead(name, workload.config)
    return name


def test_a_cluster_that_is_to_manage_itself_has_no_workers_before_its_pivot(api, lattices, workload):
    name = lattices.name("self")
    lattices.rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.namespace(name)}})
    lattices.lead(name, workload.config)
    lattices.cluster(name, workers=2)
    lattices.machines.wait_until_initialized(name)
    status = lattices.conditioned(name, "Provisioned", "False", "NotPivoted")
    lattices.until(lambda: lattices.status(name)["phase"] == "Pivoting", "its control plane runs")
    assert (status["pivoted"], lattices.replicas(name, "default")) == (False, 0)

    lattices.lead(name, api.config)

    lattices.until(lambda: lattices.replicas(name, "default") == 2, "workers start after the pivot")
    lattices.until(lambda: lattices.status(name)["pivoted"], "the status says so")


def test_a_cluster_that_was_moved_to_another_management_cluster_is_not_made_a_second_time(lattices):
    name = lattices.cluster(lattices.name("moved"))
    lattices.machines.wait_until_initialized(name)
    path = lattices.path(name, "clusters", name)
    uid = lattices.rest.get(path)["metadata"]["uid"]

    def noted():
        return lattices.see(name)["metadata"]["annotations"].get(names.CLUSTER_UID) == uid

    lattices.until(noted, "it is noted that it has come up")
    lattices.pause(name, is_on=True)
    lattices.move_away(name)

    lattices.conditioned(name, "Ready", "False", "ClusterGone")
    assert not lattices.exists(path)
    assert names.CLUSTER_UID in lattices.condition(name, "Ready")["message"]
    lattices.delete(name)
    lattices.until(lambda: not lattices.exists(f"{CLUSTERS}/{name}"), "it can be deleted")


def test_workers_start_without_a_pivot(lattices, kept):
    lattices.until(lambda: lattices.status(kept).get("pivoted") is False, "it is known to be another cluster")
    assert lattices.status(kept)["phase"] == "Ready"


def test_a_pool_is_drained_through_the_secret_and_nothing_here_is_touched(lattices, kept, workload):
    lattices.until(lambda: lattices.status(kept).get("pivoted") is False, "it is known to be another cluster")
    (here,) = lattices.nodes_of(kept, "leaves")
    node = here["metadata"]["name"]
    (nearby,) = lattices.machines.add_pods(here, 1, app="near")
    guard(workload.rest, node, lattices.until)
    lattices.change_pools(kept, leaves=None)

    lattices.conditioned(kept, "PoolsDrained", "False", "DrainTimeout")

    def refused():
        return [each for each in lattices.pool(kept, "leaves").get("blockingPods", ()) if each["message"]]

    (blocking,) = lattices.until(refused, "the eviction is refused")
    assert (blocking["pod"], blocking["node"]) == ("default/far", node)
    assert "The disruption budget far" in blocking["message"]
    there = workload.rest.get(f"/api/v1/nodes/{node}")
    assert there["spec"]["unschedulable"]
    assert there["metadata"]["annotations"][names.CORDONED_BY] == f"{kept}/leaves"
    assert not lattices.node(node)["spec"].get("unschedulable")
    assert [each["metadata"]["name"] for each in lattices.machines.pods("near")] == [nearby]

    workload.rest.call("DELETE", f"{BUDGETS}/far")
    lattices.until(lambda: workload.rest.status(f"{PODS}/far") == 404, "the pod is evicted")
    lattices.release("near")
    lattices.gone(kept, "leaves")


def test_its_deletion_takes_the_cluster_then_the_namespace_then_itself(lattices, kept):
    clusters = History(lattices, lattices.path(kept, "clusters"))
    namespaces, itself = History(lattices, "/api/v1/namespaces"), History(lattices, CLUSTERS)

    lattices.delete(kept)

    lattices.until(lambda: not lattices.exists(f"{CLUSTERS}/{kept}"), "it is gone")
    namespace = namespaces.deletion(names.namespace(kept))
    assert clusters.deletion(kept) < namespace < itself.deletion(kept)
