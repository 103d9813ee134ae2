"""ConfigMap or Secret with the rendered configuration of a service on a node."""

from __future__ import annotations

import base64
from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.configuration.drop_ins import Rendered
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef

API_VERSION: Final = "v1"
CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"


def config_kind(render_as: str) -> str:
    """Return the kind for `renderAs`; ConfigMap if empty."""
    return SECRET if render_as == SECRET else CONFIG_MAP


def config_object(
    node: OpenStackDataPlaneNode, service: Service, rendered: Rendered, render_as: str, owner: ObjectRef | None
) -> Object:
    """Return the configuration object. Without an owner, the node owns it."""
    kind = config_kind(render_as)
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": names.config_name(node.name, service.name),
            "namespace": node.metadata.namespace,
            "labels": {names.NODE_LABEL: node.name, names.SERVICE_LABEL: service.name},
            "annotations": {names.HASH: rendered.hash},
            "ownerReferences": [_owner_reference(owner or _reference(node))],
        },
        **({"type": "Opaque"} if kind == SECRET else {}),
        **_data(kind, rendered),
    }


def _data(kind: str, rendered: Rendered) -> Object:
    """Return the data; omitted if empty, because the API server drops an empty map and the apply would repeat.

    `stringData` of a Secret cannot be read back either, so it is not used.
    """
    if not rendered.files:
        return {}
    if kind == CONFIG_MAP:
        return {"data": dict(rendered.files)}
    return {"data": {name: base64.b64encode(text.encode()).decode() for name, text in rendered.files.items()}}


def _owner_reference(owner: ObjectRef) -> Object:
    """Return a controller reference, so a service operator that watches owned objects gets the events."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


def _reference(node: OpenStackDataPlaneNode) -> ObjectRef:
    return ObjectRef(
        names.DATAPLANE_API_VERSION, names.NODE_KIND, node.name, node.metadata.namespace or "", node.metadata.uid
    )
