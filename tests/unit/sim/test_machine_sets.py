"""Machines of a MachineSet, and changes of its template that reach existing ones."""

from nodeyard.kube.patch import merge_patch
from nodeyard.sim.machines.machine_sets import new_machine, update_patch
from nodeyard.sim.machines.machines import node_patch


def machine_set(labels=None, annotations=None, **spec):
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "metadata": {
            "name": "s",
            "namespace": "n",
            "uid": "u",
            "labels": {"cluster.x-k8s.io/deployment-name": "d"},
        },
        "spec": {
            "clusterName": "c",
            "template": {
                "metadata": {"labels": labels or {}, "annotations": annotations or {}},
                "spec": {
                    "clusterName": "c",
                    "bootstrap": {"configRef": {"apiGroup": "b", "kind": "KubeadmConfigTemplate", "name": "t"}},
                    "infrastructureRef": {"apiGroup": "i", "kind": "DevMachineTemplate", "name": "t"},
                    **spec,
                },
            },
        },
    }


def test_a_machine_references_its_parts_and_its_owner():
    made = new_machine(machine_set({"a": "b"}), "x")
    assert made["spec"]["bootstrap"]["configRef"] == {"apiGroup": "b", "kind": "KubeadmConfig", "name": "s-x"}
    assert made["spec"]["infrastructureRef"] == {"apiGroup": "i", "kind": "DevMachine", "name": "s-x"}
    assert made["metadata"]["labels"] == {
        "a": "b",
        "cluster.x-k8s.io/cluster-name": "c",
        "cluster.x-k8s.io/deployment-name": "d",
        "cluster.x-k8s.io/set-name": "s",
    }


def test_a_changed_template_removes_only_its_own_keys():
    machine = new_machine(machine_set({"old": "1"}, {"note": "1"}, deletion={"nodeDrainTimeoutSeconds": 1}), "x")
    metadata = machine["metadata"]
    touched = {**machine, "metadata": {**metadata, "annotations": {**metadata["annotations"], "theirs": "1"}}}
    after = merge_patch(touched, update_patch(touched, machine_set({"new": "2"})))
    assert "old" not in after["metadata"]["labels"]
    assert after["metadata"]["labels"]["new"] == "2"
    assert after["metadata"]["annotations"]["theirs"] == "1"
    assert "note" not in after["metadata"]["annotations"]
    assert "deletion" not in after["spec"]


def test_a_machine_that_is_as_its_set_says_is_left_alone():
    machine = new_machine(machine_set({"a": "b"}), "x")
    assert merge_patch(machine, update_patch(machine, machine_set({"a": "b"}))) == machine


def machine_and_node(labels, taints=(), told=""):
    metadata = {"name": "m", "namespace": "n", "labels": labels}
    node = {
        "metadata": {
            "name": "m",
            "resourceVersion": "7",
            "labels": {"kept": "x", "node.cluster.x-k8s.io/gone": "1"},
            "annotations": {"cluster.x-k8s.io/labels-from-machine": told},
        },
        "spec": {"taints": list(taints)},
    }
    return {"metadata": metadata, "spec": {"clusterName": "c"}}, node


def test_labels_under_cluster_apis_prefixes_are_kept_on_the_node_and_no_others():
    labels = {"node-role.kubernetes.io/gpu": "", "x.node-restriction.kubernetes.io/a": "1", "plain": "1"}
    machine, node = machine_and_node(labels, told="node.cluster.x-k8s.io/gone")
    after = merge_patch(node, node_patch(machine, node, None))
    assert after["metadata"]["labels"] == {
        "kept": "x",
        "node-role.kubernetes.io/gpu": "",
        "x.node-restriction.kubernetes.io/a": "1",
    }


def test_the_uninitialized_taint_is_removed_and_others_stay():
    other = {"key": "k", "effect": "NoSchedule"}
    fresh = {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}
    machine, node = machine_and_node({}, [other, fresh])
    body = node_patch(machine, node, None)
    assert body["spec"]["taints"] == [other]
    assert body["metadata"]["resourceVersion"] == "7"
