"""Defaults of namespaces and Secrets."""

from __future__ import annotations

import base64

from nodeyard.apiserver.kinds.edits import fill, filler
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE_NAME

_CORE = "io.k8s.api.core.v1."


def namespace(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    name, labels = metadata.get("name"), metadata.get("labels") or {}
    if not name or labels.get(NAMESPACE_NAME) == name:
        return obj
    return {**obj, "metadata": {**metadata, "labels": {**labels, NAMESPACE_NAME: name}}}


def secret(obj: Object) -> Object:
    """Opaque unless it says otherwise. `stringData` is only for writing: it goes over into data."""
    obj = fill(obj, {"type": "Opaque"})
    if "stringData" not in obj:
        return obj
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in obj["stringData"].items()}
    kept = {field: value for field, value in obj.items() if field != "stringData"}
    return {**kept, "data": {**(obj.get("data") or {}), **encoded}}


DEFAULTS = {
    _CORE + "Namespace": namespace,
    _CORE + "NamespaceStatus": filler({"phase": "Active"}),
    _CORE + "Secret": secret,
}
