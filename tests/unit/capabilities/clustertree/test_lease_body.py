"""Request bodies of lease renewals."""

import json

import msgspec
import pytest

from nodeyard.capabilities.clustertree.leases.node_lease import ReadLease, manifest, renew_patch, repair_patch

NOW = "2026-01-01T00:00:10.000000Z"
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}


def found(owners=(NODE,), **spec):
    spec = {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z", **spec}
    metadata = {"name": "n1", "resourceVersion": "7", "ownerReferences": list(owners)}
    return msgspec.convert({"metadata": metadata, "spec": spec}, ReadLease)


def test_a_renewal_is_the_version_and_the_time():
    assert json.loads(renew_patch("7", NOW)) == {"metadata": {"resourceVersion": "7"}, "spec": {"renewTime": NOW}}


def test_a_lease_that_is_right_is_only_renewed():
    assert repair_patch(found(), "n1", "u1", NOW) == json.loads(renew_patch("7", NOW))


@pytest.mark.parametrize("spec", [None, {}], ids=["no spec", "empty spec"])
def test_a_lease_without_anything_gets_everything(spec):
    lease = msgspec.convert({"metadata": {"resourceVersion": "7"}, "spec": spec}, ReadLease)
    assert repair_patch(lease, "n1", "u1", NOW) == {
        "metadata": {"resourceVersion": "7", "ownerReferences": [NODE]},
        "spec": {"renewTime": NOW, "acquireTime": NOW, "holderIdentity": "n1", "leaseDurationSeconds": 40},
    }


def test_a_lease_of_an_earlier_node_gets_the_new_owner_and_foreign_owners_stay():
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c1", "controller": True}
    sent = repair_patch(found([{**NODE, "uid": "old"}, other]), "n1", "u1", NOW)
    assert sent["metadata"]["ownerReferences"] == [other, NODE]


def test_owners_that_are_right_are_not_sent():
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c1"}
    assert "ownerReferences" not in repair_patch(found([NODE, other]), "n1", "u1", NOW)["metadata"]


def test_a_holder_that_is_another_is_replaced():
    assert repair_patch(found(holderIdentity="vk"), "n1", "u1", NOW)["spec"] == {
        "renewTime": NOW,
        "acquireTime": NOW,
        "holderIdentity": "n1",
    }


def test_a_new_lease_belongs_to_the_node():
    made = manifest("n1", "u1", NOW)
    assert made["metadata"] == {"name": "n1", "namespace": "kube-node-lease", "ownerReferences": [NODE]}
    assert made["spec"] == {
        "holderIdentity": "n1",
        "leaseDurationSeconds": 40,
        "acquireTime": NOW,
        "renewTime": NOW,
    }


def test_a_node_of_unknown_uid_owns_no_lease():
    assert "ownerReferences" not in manifest("n1", "", NOW)["metadata"]
