"""The ConfigMap or Secret that holds the rendered configuration of a node's service, as it is applied."""

from __future__ import annotations

import base64
from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration.rendering import Rendered
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef

API_VERSION: Final = "v1"
CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"


def config_kind(render_as: str) -> str:
    """The kind that a profile's `renderAs` asks for; a ConfigMap where it says nothing."""
    return SECRET if render_as == SECRET else CONFIG_MAP


def config_object(
    node: OpenStackDataPlaneNode, service: Service, rendered: Rendered, render_as: str, owner: ObjectRef | None
) -> Object:
    """The owner is the service object, once it exists; until then, and without one, the node."""
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
    """Nothing where there are no files: the server keeps no empty map, and an apply of one would never look done.

    The same goes for `stringData` of a Secret, which nobody can read back.
    """
    if not rendered.files:
        return {}
    if kind == CONFIG_MAP:
        return {"data": dict(rendered.files)}
    return {"data": {name: base64.b64encode(text.encode()).decode() for name, text in rendered.files.items()}}


def _owner_reference(owner: ObjectRef) -> Object:
    """As its controller, so that the service's operator learns of changes the way it does of its own objects."""
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
