"""Defaults of namespaces and Secrets."""

from __future__ import annotations

import base64

from nodeyard.apiserver.kinds.edits import fill
from nodeyard.kube.json import Object

_CORE = "io.k8s.api.core.v1."


def secret(obj: Object) -> Object:
    """Opaque unless it says otherwise. `stringData` is only for writing: it goes over into data."""
    obj = fill(obj, {"type": "Opaque"})
    if "stringData" not in obj:
        return obj
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in obj["stringData"].items()}
    kept = {field: value for field, value in obj.items() if field != "stringData"}
    return {**kept, "data": {**(obj.get("data") or {}), **encoded}}


DEFAULTS = {
    _CORE + "Secret": secret,
}
