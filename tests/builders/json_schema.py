"""A validator for the part of JSON Schema that our published schemas use; it refuses schemas that use more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "null": type(None)}
_ANNOTATIONS = {"$schema", "$defs", "title", "description", "default"}
_CHECKED = {"$ref", "anyOf", "const", "enum", "type", "properties", "required", "items"}


def problems(schema: Any, value: Any, root: Any = None, path: str = "$") -> Iterator[str]:
    """Yield each violation. An unnamed property is one too, unless the schema names no property at all."""
    root = schema if root is None else root
    assert not schema.keys() - _ANNOTATIONS - _CHECKED, f"{path}: the validator does not know all of {sorted(schema)}"
    if "$ref" in schema:
        yield from problems(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root, path)
    if "anyOf" in schema:
        found = [list(problems(each, value, root, path)) for each in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "type" in schema and not (
        isinstance(value, _TYPES[schema["type"]]) and (not isinstance(value, bool) or schema["type"] == "boolean")
    ):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from problems(schema.get("items", {}), each, root, f"{path}[{place}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        yield from (f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        yield from (f"{path}: {name} is unknown" for name in value if known and name not in known)
        for name in known.keys() & value.keys():
            yield from problems(known[name], value[name], root, f"{path}.{name}")
