"""The object a service has for a node: which fields of it are ours, and what they say. The rest is its user's."""

from __future__ import annotations

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.availability import mapping
from nodeyard.capabilities.profiles.planning.inheritance import Effective
from nodeyard.capabilities.profiles.planning.resolution import Resolution
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Service
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta


def owner_of(metadata: ObjectMeta) -> Object:
    """What is made for a node goes with it."""
    return {
        "apiVersion": names.DATAPLANE_API_VERSION,
        "kind": names.NODE_KIND,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_ours(snapshot: NodeSnapshot, service: Service, live: Object) -> bool:
    """Whether an object of the node's name is this node's: one that names another node is not touched."""
    named = mapping(live.get("spec")).get(service.node_field)
    labels = live["metadata"].get("labels") or {}
    return (
        named in (None, "", snapshot.node.name)
        and labels.get(names.NODE_LABEL, snapshot.node.name) == snapshot.node.name
    )


def is_made_by(live: Object, service: Service) -> bool:
    """Whether it was made for the service, and is to stay: one whose operator still tidies up after it goes already."""
    labels = live["metadata"].get("labels") or {}
    return labels.get(names.SERVICE_LABEL) == service.name and "deletionTimestamp" not in live["metadata"]


def is_of_another(snapshot: NodeSnapshot, configuration: Object) -> bool:
    """Whether a configuration is another node's: `a` with service `b-c` and `a-b` with service `c` name it alike."""
    owners = configuration["metadata"].get("ownerReferences") or ()
    return any(each["kind"] == names.NODE_KIND and each["name"] != snapshot.node.name for each in owners)


def service_object(
    snapshot: NodeSnapshot, resolution: Resolution, effective: Effective, cell: str, annotations: dict[str, str]
) -> Object:
    """What we say about it. A field that we do not say any more is taken back by the server."""
    node, service = snapshot.node.metadata, resolution.service
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
            "labels": {names.NODE_LABEL: node.name, names.SERVICE_LABEL: service.name},
            "annotations": annotations,
            "ownerReferences": [owner_of(node)],
        },
        "spec": spec,
    }


def _compute_fields(effective: Effective, cell: str) -> Object:
    """What a compute takes over from its node, where the node has it."""
    given: Object = {
        "cellName": cell,
        "sshKeySecretName": effective.section.ansible_ssh_private_key_secret,
        "networkAttachments": list(effective.network_attachments),
    }
    return {name: value for name, value in given.items() if value}


def custom_config(live: Object | None) -> str:
    """What the object's user adds; never ours."""
    return str(mapping((live or {}).get("spec")).get(names.CUSTOM_CONFIG) or "")


def profile_of(live: Object, service: Service) -> str:
    """The profile that an object has now."""
    return str(mapping(live.get("spec")).get(service.profile_field) or "")
