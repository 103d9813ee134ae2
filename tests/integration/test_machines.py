"""Machines on both servers: simulated Cluster API, and the real one with simulated providers, behave alike."""

from __future__ import annotations

import pytest
from tests.builders.machines import Clusters

from nodeyard.testing.machines import name_of, namespace

TIER = "node.cluster.x-k8s.io/tier"
GPU = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
CLUSTER = "machined"
"""A cluster for all tests of this file: a control plane costs more than a pool."""


@pytest.fixture(scope="module")
def clusters(machines):
    clusters = Clusters(machines)
    clusters.cluster(CLUSTER)
    return clusters


@pytest.fixture(scope="module")
def other(clusters):
    """A cluster for tests that change the whole cluster."""
    clusters.cluster("machined-too")
    return "machined-too"


def names(objects):
    return [name_of(one) for one in objects]


def taints(node):
    """Return the taints without those that the node controller manages."""
    return [
        {key: one[key] for key in ("key", "effect")}
        for one in node["spec"].get("taints") or ()
        if not one["key"].startswith("node.kubernetes.io/")
    ]


def condition(obj, type):
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((one["status"] for one in conditions if one["type"] == type), None)


def deleting_message(machine):
    conditions = (machine.get("status") or {}).get("conditions") or ()
    return next((one["message"] for one in conditions if one["type"] == "Deleting"), "")


def test_a_node_has_the_settings_of_its_kubeadm_config(machines, clusters):
    pool = clusters.pool(CLUSTER, "made", 1, node_labels={"a": "b", "lattice.dev/pool": "made"}, taints=[GPU])
    (node,) = machines.wait_for_nodes(CLUSTER, pool, 1)
    (machine,) = machines.machines(CLUSTER, pool)
    assert {"a": "b", "lattice.dev/pool": "made"}.items() <= node["metadata"]["labels"].items()
    assert taints(node) == [GPU]
    assert node["metadata"]["annotations"]["cluster.x-k8s.io/machine"] == name_of(machine)
    assert machine["status"]["nodeRef"]["name"] == name_of(node)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == machine["spec"]["version"]
    assert machines.errors == []


def test_parts_of_machines_name_their_source(machines, clusters):
    pool = clusters.pool(CLUSTER, "origin", 1)
    machines.wait_for_nodes(CLUSTER, pool, 1)
    (machine,) = machines.machines(CLUSTER, pool)
    for reference in (machine["spec"]["infrastructureRef"], machine["spec"]["bootstrap"]["configRef"]):
        plural = f"{reference['kind'].lower()}s"
        place = f"/apis/{reference['apiGroup']}/v1beta2/namespaces/{namespace(CLUSTER)}/{plural}"
        part = machines.rest.get(f"{place}/{reference['name']}")
        assert part["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"] == pool
        assert part["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"] == pool
        owners = part["metadata"]["ownerReferences"]
        assert [one["name"] for one in owners if one["kind"] == "Machine"] == [name_of(machine)]


def test_a_label_that_the_kubelet_refuses_keeps_its_machine_from_joining(machines, clusters, eventually):
    pool = clusters.pool(CLUSTER, "refused", 1, node_labels={"node-role.kubernetes.io/gpu": "true"})
    events = f"/apis/events.k8s.io/v1/namespaces/{namespace(CLUSTER)}/events"

    def refusals():
        items = machines.rest.get(events)["items"]
        return [one["note"] for one in items if one["reason"] == "NotJoining"]

    assert "node-role.kubernetes.io/gpu" in eventually(refusals, "the refusal is told")[0]
    assert machines.nodes(CLUSTER, pool) == []
    clusters.delete(CLUSTER, pool)
    machines.wait_until_removed(CLUSTER, pool)


def test_a_pool_is_scaled_up_and_down(machines, clusters):
    pool = clusters.pool(CLUSTER, "scaled", 0)
    assert machines.wait_for_nodes(CLUSTER, pool, 0) == []
    path = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace(CLUSTER)}/machinedeployments/{pool}/scale"
    machines.rest.call("PATCH", path, {"spec": {"replicas": 2}}, content_type="application/merge-patch+json")
    before = names(machines.wait_for_nodes(CLUSTER, pool, 2))
    clusters.change(CLUSTER, pool, {"replicas": 1})
    (left,) = names(machines.wait_for_nodes(CLUSTER, pool, 1))
    assert left in before


def test_labels_under_cluster_apis_prefixes_reach_nodes_in_place_and_others_do_not(machines, clusters, eventually):
    pool = clusters.pool(CLUSTER, "labelled", 1, labels={"workload": "a"}, node_labels={"workload": "a"})
    (node,) = machines.wait_for_nodes(CLUSTER, pool, 1)
    clusters.relabel(CLUSTER, pool, labels={TIER: "gold", "workload": "b"})

    def labels():
        return machines.nodes(CLUSTER, pool)[0]["metadata"]["labels"]

    eventually(lambda: labels().get(TIER) == "gold", "the label reaches the node")
    assert labels()["workload"] == "a"
    assert machines.machines(CLUSTER, pool)[0]["metadata"]["labels"]["workload"] == "b"
    clusters.relabel(CLUSTER, pool, labels={TIER: None})
    eventually(lambda: TIER not in labels(), "the label leaves the node")
    assert names(machines.wait_for_nodes(CLUSTER, pool, 1)) == [name_of(node)]


def test_annotations_and_deletion_settings_reach_machines_in_place(machines, clusters, eventually):
    pool = clusters.pool(CLUSTER, "placed", 1)
    before = names(machines.wait_for_nodes(CLUSTER, pool, 1))
    clusters.relabel(CLUSTER, pool, annotations={"note": "x"})
    clusters.retemplate(CLUSTER, pool, {"deletion": {"nodeDrainTimeoutSeconds": 7}})

    def has_both():
        (machine,) = machines.machines(CLUSTER, pool)
        timeout = (machine["spec"].get("deletion") or {}).get("nodeDrainTimeoutSeconds")
        return timeout == 7 and (machine["metadata"].get("annotations") or {}).get("note") == "x"

    eventually(has_both, "both reach the machine")
    assert names(machines.wait_for_nodes(CLUSTER, pool, 1)) == before


def test_a_new_template_replaces_machines_and_the_old_one_stays(machines, clusters):
    pool = clusters.pool(CLUSTER, "rolled", 2)
    before = names(machines.wait_for_nodes(CLUSTER, pool, 2))
    clusters.config_template(CLUSTER, f"{pool}-next", {"generation": "two"})
    reference = {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": f"{pool}-next"}
    clusters.retemplate(CLUSTER, pool, {"bootstrap": {"configRef": reference}})
    after = machines.wait_for_nodes(CLUSTER, pool, 2)
    assert set(names(after)).isdisjoint(before)
    assert {node["metadata"]["labels"]["generation"] for node in after} == {"two"}
    templates = f"/apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/{namespace(CLUSTER)}/kubeadmconfigtemplates"
    assert machines.rest.get(f"{templates}/{pool}")["metadata"]["name"] == pool


def test_machines_that_do_not_join_hold_a_rollout_up(machines, clusters, eventually):
    pool = clusters.pool(CLUSTER, "stuck", 1)
    before = names(machines.wait_for_nodes(CLUSTER, pool, 1))
    machines.hold_joins(pool)
    clusters.retemplate(CLUSTER, pool, {"version": "v1.35.1"})
    eventually(lambda: len(machines.machines(CLUSTER, pool)) == 2, "a machine is added")

    def counters():
        status = machines.deployment(CLUSTER, pool)["status"]
        return [status.get(key) for key in ("replicas", "readyReplicas", "upToDateReplicas")]

    eventually(lambda: counters() == [2, 1, 1], "the counters tell of it")
    assert names(machines.nodes(CLUSTER, pool)) == before
    machines.release_joins(pool)
    (node,) = machines.wait_for_nodes(CLUSTER, pool, 1)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.1"


def test_a_failed_kubelet_makes_its_machine_unready_until_it_recovers(machines, clusters, eventually):
    pool = clusters.pool(CLUSTER, "failing", 1)
    (node,) = machines.wait_for_nodes(CLUSTER, pool, 1)
    machines.fail(node)
    eventually(lambda: machines.deployment(CLUSTER, pool)["status"]["readyReplicas"] == 0, "the counter tells of it")
    machines.recover(node)
    machines.wait_for_nodes(CLUSTER, pool, 1)


def test_a_budget_holds_a_deletion_up_until_it_is_released(machines, clusters, eventually):
    pool = clusters.pool(CLUSTER, "budgeted", 1)
    (node,) = machines.wait_for_nodes(CLUSTER, pool, 1)
    machines.add_pods(node, 2, app="budgeted")
    machines.add_budget("budgeted", min_available=2)
    clusters.delete(CLUSTER, pool)

    def message():
        (machine,) = machines.machines(CLUSTER, pool)
        return deleting_message(machine)

    text = "The disruption budget budgeted needs 2 healthy pods and has 2 currently"
    eventually(lambda: text in message(), "the machine tells of the budget", 45)
    (cordoned,) = machines.nodes(CLUSTER, pool)
    assert cordoned["spec"]["unschedulable"]
    assert len(machines.pods("budgeted")) == 2
    machines.remove_budget("budgeted")
    machines.wait_until_removed(CLUSTER, pool)
    assert machines.pods("budgeted") == []


def test_a_drain_that_takes_too_long_times_out(machines, clusters):
    pool = clusters.pool(CLUSTER, "timed", 1, deletion={"nodeDrainTimeoutSeconds": 1})
    (node,) = machines.wait_for_nodes(CLUSTER, pool, 1)
    machines.add_pods(node, 1, app="timed")
    machines.add_budget("timed", min_available=1)
    clusters.delete(CLUSTER, pool)
    machines.wait_until_removed(CLUSTER, pool)
    assert [one.get("metadata", {}).get("deletionTimestamp") for one in machines.pods("timed")] == [None]


def test_a_machine_annotated_so_is_not_drained(machines, clusters, eventually):
    pool = clusters.pool(CLUSTER, "forced", 1)
    (node,) = machines.wait_for_nodes(CLUSTER, pool, 1)
    machines.add_pods(node, 1, app="forced")
    machines.add_budget("forced", min_available=1)
    force = {
        f"machine.cluster.x-k8s.io/{what}": "true"
        for what in ("exclude-node-draining", "exclude-wait-for-node-volume-detach")
    }
    clusters.relabel(CLUSTER, pool, annotations=force)

    def has_come():
        (machine,) = machines.machines(CLUSTER, pool)
        return force.items() <= (machine["metadata"].get("annotations") or {}).items()

    eventually(has_come, "the machine carries the annotations")
    clusters.delete(CLUSTER, pool)
    machines.wait_until_removed(CLUSTER, pool)
    assert len(machines.pods("forced")) == 1


def test_a_paused_cluster_is_not_reconciled(machines, clusters, other, eventually):
    pool = clusters.pool(other, "p", 1)
    (node,) = machines.wait_for_nodes(other, pool, 1)
    clusters.pause(other, is_on=True)
    eventually(lambda: condition(machines.deployment(other, pool), "Paused") == "True", "it is seen")
    clusters.change(other, pool, {"replicas": 2})
    machines.wait_for_nodes(CLUSTER, clusters.pool(CLUSTER, "meanwhile", 1), 1)
    assert names(machines.machines(other, pool)) == [name_of(node)]
    clusters.pause(other, is_on=False)
    machines.wait_for_nodes(other, pool, 2)
    assert condition(machines.deployment(other, pool), "Paused") == "False"


def test_a_control_plane_is_upgraded_by_replacing_its_machine_unless_it_is_held(machines, clusters, other, eventually):
    def status():
        return clusters.control_plane(other)["status"]

    assert status()["version"] == "v1.35.0"
    machines.hold_upgrade(other)
    clusters.upgrade(other, "v1.36.0")
    eventually(lambda: status()["upToDateReplicas"] == 0, "it is seen")
    assert (status()["version"], status()["replicas"]) == ("v1.35.0", 1)
    pool = clusters.pool(other, "early", 1, version="v1.36.0")
    eventually(lambda: condition(machines.deployment(other, pool), "ScalingUp") == "True", "a pool waits for it")
    machines.wait_for_nodes(CLUSTER, clusters.pool(CLUSTER, "unconcerned", 1), 1)
    assert machines.machines(other, pool) == []
    machines.release_upgrade(other)
    eventually(lambda: status()["version"] == "v1.36.0" and status()["readyReplicas"] == 1, "it is upgraded", 60)
    assert status()["observedGeneration"] == clusters.control_plane(other)["metadata"]["generation"]
    eventually(lambda: machines.machines(other, pool), "the pool has its machine")


def test_the_webhook_makes_an_absent_number_one_on_update_too(machines, clusters):
    pool = clusters.pool(CLUSTER, "defaulted", 0)
    clusters.change(CLUSTER, pool, {"replicas": None})
    assert machines.deployment(CLUSTER, pool)["spec"]["replicas"] == 1


def test_the_webhook_keeps_the_number_between_the_autoscalers_bounds(machines, clusters):
    pool = clusters.pool(CLUSTER, "autoscaled", 0)
    prefix = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
    bounds = {"annotations": {f"{prefix}-min-size": "2", f"{prefix}-max-size": "3"}}
    path = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace(CLUSTER)}/machinedeployments/{pool}"
    machines.hold_joins(pool)
    body = {"metadata": bounds, "spec": {"replicas": None}}
    answer = machines.rest.call("PATCH", path, body, content_type="application/merge-patch+json")
    assert answer["spec"]["replicas"] == 2
    answer = machines.rest.call("PATCH", path, {"spec": {"replicas": 3}}, content_type="application/merge-patch+json")
    answer = machines.rest.call("PATCH", path, body, content_type="application/merge-patch+json")
    assert answer["spec"]["replicas"] == 3


def test_deleting_a_cluster_drains_nothing_and_leaves_no_machine(machines, clusters, other):
    (node,) = machines.wait_for_nodes(other, clusters.pool(other, "last", 1, version="v1.36.0"), 1)
    machines.add_pods(node, 1, app="last")
    machines.add_budget("last", min_available=1)
    place = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace(other)}"
    machines.rest.call("DELETE", f"{place}/clusters/{other}")
    machines.wait_until_deleted(other)
    for plural in ("machinedeployments", "machinesets", "machines"):
        assert machines.rest.get(f"{place}/{plural}")["items"] == []
    assert len(machines.pods("last")) == 1
