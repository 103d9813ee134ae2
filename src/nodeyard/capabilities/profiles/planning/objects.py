"""The object a service has for a node: which fields of it are ours, and what they say. The rest is its user's.

An object that was there before us stays its maker's: it is told what the node has chosen, but neither does it go with
the node, nor when nothing asks for it any more. What tells the two apart stands on the object itself.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.availability import annotation, mapping
from nodeyard.capabilities.profiles.planning.inheritance import Effective
from nodeyard.capabilities.profiles.planning.resolution import Resolution
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Service
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.owned import owns

_CELL: Final = "cellName"


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


def is_made_for(node: ObjectMeta, service: Service, live: Object) -> bool:
    """Whether we made it: by either mark of that, so that one which is lost comes back."""
    metadata = live["metadata"]
    labels, owners = metadata.get("labels") or {}, metadata.get("ownerReferences") or ()
    return labels.get(names.SERVICE_LABEL) == service.name or any(each["uid"] == node.uid for each in owners)


def is_told(node: ObjectMeta, service: Service, live: Object) -> bool:
    """Whether something of it is ours to take away: all of it, or what was said on it."""
    return not is_going(live) and (is_made_for(node, service, live) or bool(annotation(live, names.HASH)))


def is_going(live: Object) -> bool:
    """Whether it is deleted already, and its operator still tidies up after it."""
    return "deletionTimestamp" in live["metadata"]


def is_of_another(snapshot: NodeSnapshot, configuration: Object) -> bool:
    """Whether a configuration is another node's: `a` with service `b-c` and `a-b` with service `c` name it alike."""
    owners = configuration["metadata"].get("ownerReferences") or ()
    return any(each["kind"] == names.NODE_KIND and each["name"] != snapshot.node.name for each in owners)


def service_object(
    snapshot: NodeSnapshot, resolution: Resolution, effective: Effective, cell: str, annotations: dict[str, str]
) -> Object:
    """What we say about it. A field that we do not say any more is taken back by the server."""
    node, service = snapshot.node.metadata, resolution.service
    live = snapshot.objects.get(service.name)
    is_made = live is None or is_made_for(node, service, live)
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
            **({"ownerReferences": [owner_of(node)]} if is_made else {}),
        },
        "spec": spec,
    }


def left_alone(live: Object) -> Object:
    """What we still say on an object of somebody else that nothing asks for: its cell, which cannot be taken back."""
    metadata = {name: live["metadata"][name] for name in ("name", "namespace")}
    body: Object = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
    if owns(live, names.MANAGER, "spec", _CELL):
        body["spec"] = {_CELL: live["spec"][_CELL]}
    return body


def _compute_fields(effective: Effective, cell: str) -> Object:
    """What a compute takes over from its node, where the node has it."""
    given: Object = {
        _CELL: cell,
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
