"""Service objects that Nodeyard did not create: it configures them, and never deletes or owns them."""

from dataclasses import replace

import pytest

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.plan import plan
from nodeyard.capabilities.profiles.snapshot import Removal
from nodeyard.plan.model import Disruption, Verb

from ....builders.profiles import DPDK, NODE, NOW, SHARED, as_stored, node, profile, snapshot

AGENT = as_stored(
    {
        "apiVersion": names.NEUTRON_API_VERSION,
        "kind": names.AGENT_KIND,
        "metadata": {"name": NODE, "namespace": "openstack", "labels": {"team": "a"}},
        "spec": {"customServiceConfig": "[DEFAULT]\ndebug = true\n"},
    }
)
COMPUTE = {**AGENT, "apiVersion": names.NOVA_API_VERSION, "kind": names.COMPUTE_KIND}
ASKED = {names.NETWORK_PROFILE: "dpdk"}
PLACED = {names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "shared"}
OWNER = {"apiVersion": names.DATAPLANE_API_VERSION, "kind": names.NODE_KIND, "name": NODE, "uid": f"uid-{NODE}"}


def world(annotations, **objects):
    profiles = {"neutron": [profile("dpdk", DPDK)], "nova": [profile("shared", SHARED)]}
    return snapshot(node(role="", annotations=annotations), objects=objects, **profiles)


def written(each, service):
    """Return the object after the write of the plan."""
    planned = plan(each, NOW)
    live = each.objects[service]
    (action,) = (action for action in planned.plan.actions if action.object.kind == live["kind"])
    assert action.verb is Verb.APPLY
    body = planned.write(action).body
    metadata = {
        **live["metadata"],
        "labels": {**live["metadata"]["labels"], **body["metadata"]["labels"]},
        "annotations": body["metadata"]["annotations"],
        "managedFields": [{"manager": names.MANAGER, "operation": "Apply", "fieldsV1": _fields(body)}],
    }
    if owners := body["metadata"].get("ownerReferences"):
        metadata["ownerReferences"] = owners
    return {**live, "metadata": metadata, "spec": {**live["spec"], **body["spec"]}}


def _fields(value):
    said = {key: each for key, each in value.items() if key not in ("apiVersion", "kind", "name", "namespace", "uid")}
    return {f"f:{key}": _fields(each) if isinstance(each, dict) else {} for key, each in said.items()}


def test_a_foreign_object_is_reported_and_not_labelled():
    told = written(world(ASKED, neutron=AGENT), "neutron")

    assert told["spec"] == {**AGENT["spec"], "dataplaneNodeName": NODE, "networkProfileName": "dpdk"}
    assert told["metadata"]["annotations"].keys() >= {names.HASH}
    assert told["metadata"]["labels"] == {"team": "a", names.NODE_LABEL: NODE}
    assert "ownerReferences" not in told["metadata"]
    assert [each.object.kind for each in plan(world(ASKED, neutron=told), NOW).plan.actions] == ["ConfigMap"]


def test_an_unrequested_foreign_object_loses_only_our_annotations():
    told = written(world(ASKED, neutron=AGENT), "neutron")

    planned = plan(world({}, neutron=told), NOW)

    (action,) = planned.plan.actions
    assert (action.verb, action.reason) == (Verb.APPLY, "ServiceObjectReleased")
    assert (action.disruption, action.disrupts) == (Disruption.REPLACES, (NODE,))
    assert planned.write(action).body == {
        "apiVersion": names.NEUTRON_API_VERSION,
        "kind": names.AGENT_KIND,
        "metadata": {"name": NODE, "namespace": "openstack"},
    }
    assert {change.path for change in action.diff if change.to is None} >= {
        "spec.dataplaneNodeName",
        "spec.networkProfileName",
        f"metadata.labels[{names.NODE_LABEL}]",
    }


def test_a_foreign_object_without_our_annotations_is_not_written():
    assert plan(world({}, neutron=AGENT), NOW).plan.actions == ()


def test_our_annotations_on_many_foreign_objects_are_removed_together():
    told = written(world(ASKED, neutron=AGENT), "neutron")
    many = replace(world({}, neutron=told), removals={"neutron": Removal("uid-role", 40, 40)})

    (action,) = plan(many, NOW).plan.actions

    assert (action.approval_group, action.group_nodes) == ("remove neutron uid-role", 40)


def test_the_cell_of_a_foreign_compute_cannot_be_removed():
    told = written(world(PLACED, nova=COMPUTE), "nova")

    planned = plan(world({}, nova=told), NOW)

    (action,) = planned.plan.actions
    assert planned.write(action).body["spec"] == {"cellName": "nova-cell1"}


@pytest.mark.parametrize(
    "mark",
    [
        pytest.param({"labels": {names.SERVICE_LABEL: "neutron"}}, id="label"),
        pytest.param({"ownerReferences": [OWNER]}, id="owner"),
    ],
)
def test_an_object_with_one_lost_mark_regains_it_and_is_deleted_when_unrequested(mark):
    ours = {**AGENT, "metadata": {**AGENT["metadata"], **mark}}

    (_, action) = plan(world(ASKED, neutron=ours), NOW).plan.actions
    body = plan(world(ASKED, neutron=ours), NOW).write(action).body
    (unasked,) = plan(world({}, neutron=ours), NOW).plan.actions

    assert body["metadata"]["labels"][names.SERVICE_LABEL] == "neutron"
    assert [each["uid"] for each in body["metadata"]["ownerReferences"]] == [f"uid-{NODE}"]
    assert (unasked.verb, unasked.reason) == (Verb.DELETE, "ServiceObjectDeleted")
