"""Fields that keep a schema from being converted to the structural form.

Each node is checked for them as well, with a better path, so this fault is reported only if there is no other.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.kube.json import Object

_UNSUPPORTED = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}


def conversion_fault(openapi: Object) -> str | None:
    """Return the first fault, or None."""
    for key, name in _UNSUPPORTED.items():
        value = openapi.get(key)
        if value or (key == "additionalItems" and value is not None):
            return f"OpenAPIV3Schema '{name}' is not supported"
    if openapi.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(openapi.get("items"), list) and openapi["items"]:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return next((fault for below in _below(openapi) if (fault := conversion_fault(below)) is not None), None)


def _below(openapi: Object) -> Iterator[Object]:
    if openapi.get("not"):
        yield openapi["not"]
    for key in ("allOf", "anyOf", "oneOf"):
        yield from openapi.get(key) or ()
    if isinstance(openapi.get("items"), dict):
        yield openapi["items"]
    yield from (openapi.get("properties") or {}).values()
    if isinstance(openapi.get("additionalProperties"), dict):
        yield openapi["additionalProperties"]
