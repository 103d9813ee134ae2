"""Service object of a node: the fields that Nodeyard owns. All other fields belong to the user.

Nodeyard configures an object that existed before, but does not delete it with the node or when nothing requests it any
more. A label and an owner reference mark objects that Nodeyard created.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.inheritance import Effective
from nodeyard.capabilities.profiles.planning.resolution import Resolution
from nodeyard.capabilities.profiles.planning.rollout import annotation, as_mapping
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Service
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.managed_fields import owns

_CELL: Final = "cellName"


def owner_reference(metadata: ObjectMeta) -> Object:
    """Return the owner reference that garbage-collects an object with its node."""
    return {
        "apiVersion": names.DATAPLANE_API_VERSION,
        "kind": names.NODE_KIND,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_for_node(snapshot: NodeSnapshot, service: Service, live: Object) -> bool:
    """Check that an object with the name of the node does not name another node."""
    named = as_mapping(live.get("spec")).get(service.node_field)
    labels = live["metadata"].get("labels") or {}
    return (
        named in (None, "", snapshot.node.name)
        and labels.get(names.NODE_LABEL, snapshot.node.name) == snapshot.node.name
    )


def is_created_for(node: ObjectMeta, service: Service, live: Object) -> bool:
    """Check if Nodeyard created the object: the label or the owner reference is enough, so a lost mark is restored."""
    metadata = live["metadata"]
    labels, owners = metadata.get("labels") or {}, metadata.get("ownerReferences") or ()
    return labels.get(names.SERVICE_LABEL) == service.name or any(each["uid"] == node.uid for each in owners)


def has_our_fields(node: ObjectMeta, service: Service, live: Object) -> bool:
    """Check if there is something to remove: the object, or the fields that Nodeyard owns on it."""
    return not is_deleting(live) and (is_created_for(node, service, live) or bool(annotation(live, names.HASH)))


def is_deleting(live: Object) -> bool:
    """Check if the object is being deleted and waits for finalizers."""
    return "deletionTimestamp" in live["metadata"]


def is_of_other_node(snapshot: NodeSnapshot, configuration: Object) -> bool:
    """Check if a configuration belongs to another node: node `a` with service `b-c` and node `a-b` with `c` collide."""
    owners = configuration["metadata"].get("ownerReferences") or ()
    return any(each["kind"] == names.NODE_KIND and each["name"] != snapshot.node.name for each in owners)


def service_object(
    snapshot: NodeSnapshot, resolution: Resolution, effective: Effective, cell: str, annotations: dict[str, str]
) -> Object:
    """Return the body to apply; server-side apply removes fields that it no longer contains."""
    node, service = snapshot.node.metadata, resolution.service
    live = snapshot.objects.get(service.name)
    is_made = live is None or is_created_for(node, service, live)
    spec: Object = {service.node_field: node.name}
    if resolution.profile is not None:
        spec[service.profile_field] = resolution.profile.name
    if service.name == names.NOVA and service.is_built_in:
        spec |= _compute_fields(effective, cell)
    return {
        "apiVersion": service.object_api_version,
        "kind": service.object_kind,
        "metadata": {
            "name": node.name,
            "namespace": node.namespace,
            "labels": {names.NODE_LABEL: node.name, **({names.SERVICE_LABEL: service.name} if is_made else {})},
            "annotations": annotations,
            **({"ownerReferences": [owner_reference(node)]} if is_made else {}),
        },
        "spec": spec,
    }


def released_body(live: Object) -> Object:
    """Return the body that releases an object of another creator; it keeps only the cell, which is immutable."""
    metadata = {name: live["metadata"][name] for name in ("name", "namespace")}
    body: Object = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
    if owns(live, names.MANAGER, "spec", _CELL):
        body["spec"] = {_CELL: live["spec"][_CELL]}
    return body


def _compute_fields(effective: Effective, cell: str) -> Object:
    """Return the fields that a compute copies from its node."""
    given: Object = {
        _CELL: cell,
        "sshKeySecretName": effective.section.ansible_ssh_private_key_secret,
        "networkAttachments": list(effective.network_attachments),
    }
    return {name: value for name, value in given.items() if value}


def custom_config(live: Object | None) -> str:
    """Return the additional configuration that the user owns."""
    return str(as_mapping((live or {}).get("spec")).get(names.CUSTOM_CONFIG) or "")


def profile_of(live: Object, service: Service) -> str:
    """Return the name of the deployed profile."""
    return str(as_mapping(live.get("spec")).get(service.profile_field) or "")
