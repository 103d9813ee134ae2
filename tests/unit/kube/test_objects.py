"""Trimmed kinds decoded from the server's bytes: kept fields, and nulls."""

from datetime import UTC, datetime

import msgspec
import pytest

from nodeyard.kube.objects import (
    Condition,
    Lease,
    Namespace,
    Node,
    NullableStruct,
    ObjectMeta,
    OwnerReference,
    PartialObject,
    Pod,
    Slice,
    StringMap,
    Taint,
    Toleration,
)

CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def decode(type, **fields):
    return msgspec.json.decode(msgspec.json.encode(fields), type=type)


def test_a_node_keeps_what_is_decided_by_and_drops_the_rest():
    node = decode(
        Node,
        kind="Node",
        metadata={"name": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}, "managedFields": [{}]},
        spec={"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True, "providerID": "kind://n"},
        status={
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
            "capacity": {"cpu": "4"},
            "images": [{"names": ["x"], "sizeBytes": 1}],
        },
    )
    assert node.metadata == ObjectMeta(name="n", uid="u", resource_version="7", labels={"a": "b"})
    assert node.spec.taints == (Taint(key="k", effect="NoSchedule"),)
    assert (node.spec.unschedulable, node.spec.provider_id) == (True, "kind://n")
    assert node.status.conditions == (Condition(type="Ready", status="True"),)
    assert (node.status.capacity, node.status.allocatable) == ({"cpu": "4"}, {})


def test_every_null_of_a_go_zero_value_becomes_empty():
    metadata = dict.fromkeys(
        ("creationTimestamp", "deletionTimestamp", "labels", "annotations", "ownerReferences", "finalizers")
    )
    node = decode(
        Node,
        metadata={"name": "n", **metadata},
        spec={"taints": None},
        status={"conditions": None, "capacity": None, "allocatable": None},
    )
    assert node == Node(metadata=ObjectMeta(name="n"))
    assert (node.metadata.labels, node.metadata.finalizers, node.spec.taints) == ({}, (), ())
    assert node.metadata.creation_timestamp is None


def test_a_condition_without_its_times_is_one():
    [condition] = decode(
        Node, status={"conditions": [{"type": "Ready", "lastTransitionTime": None, "lastHeartbeatTime": None}]}
    ).status.conditions
    assert condition == Condition(type="Ready", status="Unknown")


def test_two_empty_maps_are_not_the_same_one():
    one, other = decode(Node, metadata={"labels": None}), decode(Node, metadata={"labels": None})
    assert one.metadata.labels is not other.metadata.labels


@pytest.mark.parametrize("type", [Node, Pod, Lease, Namespace, PartialObject])
def test_any_kind_decodes_from_almost_nothing(type):
    assert decode(type, metadata={"name": "x"}) == type(metadata=ObjectMeta(name="x"))


def test_a_pod_has_its_node_tolerations_and_owners():
    pod = decode(
        Pod,
        metadata={"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}]},
        spec={
            "nodeName": "n",
            "priority": 3,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
        status={"phase": "Running", "conditions": None},
    )
    assert pod.metadata.controller == OwnerReference(kind="DaemonSet", name="d", uid="u", controller=True)
    assert (pod.spec.node_name, pod.spec.priority, pod.status.phase) == ("n", 3, "Running")
    assert pod.spec.tolerations == (Toleration(operator="Exists"),)
    assert pod.spec.containers[0].resources.requests == {"cpu": "1"}


def test_an_owner_that_does_not_manage_is_no_controller():
    owners = [{"kind": "Node", "name": "n", "uid": "u"}]
    assert decode(PartialObject, metadata={"ownerReferences": owners}).metadata.controller is None


def test_a_lease_keeps_fractions_of_a_second():
    lease = decode(Lease, spec={"holderIdentity": "n", "renewTime": "2026-01-01T00:00:00.250000Z"})
    assert lease.spec.renew_time == CREATED.replace(microsecond=250000)


def test_an_object_of_the_wrong_shape_is_refused_with_its_path():
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.taints"):
        decode(Node, spec={"taints": "none"})


def test_an_object_cannot_be_changed():
    with pytest.raises(AttributeError):
        Node().metadata = ObjectMeta()


def test_other_kinds_get_the_same_from_the_same_base():
    class Spec(NullableStruct, frozen=True):
        node_labels: StringMap = {}
        names: Slice[str] = ()
        replicas: int | None = None

    spec = decode(Spec, nodeLabels=None, names=None, replicas=None)
    assert (spec.node_labels, spec.names, spec.replicas) == ({}, (), None)
