"""Validates the defaults of a schema against the schema itself."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.kube.fields import FieldError, child, invalid, key
from nodeyard.kube.json import Object
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.embedded import embedded_faults
from nodeyard.schema.prune import prune_value
from nodeyard.schema.validate import value_faults


def default_faults(openapi: Object, path: str) -> list[FieldError]:
    """Return the faults of all defaults: invalid values and unknown fields."""
    return list(_node_faults(openapi, path))


def _node_faults(node: Object, path: str) -> Iterator[FieldError]:
    value = node.get("default")
    if value is not None:
        schema = compile_schema(node)
        place = child(path, "default")
        if prune_value(schema, value) is not value:
            yield invalid(place, value, "must not have unknown fields")
        yield from embedded_faults(schema, value, place) or value_faults(schema, value, path=place)
    if node.get("items") is not None:
        yield from _node_faults(node["items"], child(path, "items"))
    for name, below in (node.get("properties") or {}).items():
        yield from _node_faults(below, key(child(path, "properties"), name))
