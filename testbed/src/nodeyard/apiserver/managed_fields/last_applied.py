"""Migration from client-side apply.

`kubectl apply` without --server-side keeps the whole configuration in an annotation. While an object has it,
`kubectl apply --server-side` updates it, and takes over fields that have the value of the annotation without conflict.
"""

from __future__ import annotations

import msgspec

from nodeyard.apiserver.managed_fields.compare import compare
from nodeyard.apiserver.managed_fields.fieldset import FieldSet, difference
from nodeyard.apiserver.managed_fields.owned_set import to_field_set
from nodeyard.apiserver.managed_fields.scope import Scope
from nodeyard.apiserver.managed_fields.type_check import type_faults
from nodeyard.apiserver.managed_fields.type_shape import ShapeError
from nodeyard.kube.goformat import plain_json
from nodeyard.kube.json import Object

KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATIONS_MAX = 256 * 1024


def last_applied(obj: Object) -> str:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    text: str = annotations.get(ANNOTATION) or ""
    return text


def owned_by_kubectl(scope: Scope, live: Object) -> FieldSet:
    """Return the fields whose live value is that of the annotation."""
    try:
        config = msgspec.json.decode(last_applied(live))
    except msgspec.DecodeError:
        return {}
    if (
        not isinstance(config, dict)
        or config.get("apiVersion") != scope.api_version
        or type_faults(scope.shape, config)
    ):
        return {}
    try:
        comparison = compare(scope.shape, config, live)
    except ShapeError:
        return {}
    held = difference(to_field_set(scope.shape, config), comparison.gained)
    return difference(held, comparison.removed)


def update_annotation(obj: Object, config: Object) -> Object:
    """Set the annotation to the applied configuration; drop it if annotations would be too large."""
    if not last_applied(obj):
        return obj
    annotations = {**obj["metadata"]["annotations"], ANNOTATION: plain_json(_without_annotation(config)) + "\n"}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > ANNOTATIONS_MAX:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _without_annotation(config: Object) -> Object:
    """Return the configuration without the annotation itself."""
    metadata = config.get("metadata") or {}
    annotations = metadata.get("annotations")
    if not annotations or ANNOTATION not in annotations:
        return config
    kept = {name: value for name, value in annotations.items() if name != ANNOTATION}
    return {**config, "metadata": {**metadata, "annotations": kept}}
