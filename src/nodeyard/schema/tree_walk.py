"""Visits only the schema nodes that a check concerns.

Most schemas have no embedded resource and few lists with keys. A walk is compiled once per check and schema, and
descends only to nodes that have the check; without such nodes there is no walk.
"""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.kube.fields import FieldError, child, index, key
from nodeyard.kube.json import Json
from nodeyard.schema.model import Schema

Walk = Callable[[Json, str], list[FieldError]]
"""Takes a value and its path; returns the faults there and below."""
NodeCheck = Callable[[Schema], Walk | None]
"""Returns the check of a node; None if it has none."""


def walk_tree(name: str, check: NodeCheck, schema: Schema, value: Json, path: str = "") -> list[FieldError]:
    """Run a check on all nodes that have it. The compiled walk is cached in the schema by name."""
    walk = _cached_walk(name, check, schema)
    return walk(value, path) if walk is not None else []


def _cached_walk(name: str, check: NodeCheck, schema: Schema) -> Walk | None:
    if name not in schema.compiled:
        # None ends the recursion of a recursive type. Only built-in types are recursive, and none of them is walked.
        schema.compiled[name] = None
        schema.compiled[name] = _compile_walk(name, check, schema)
    walk: Walk | None = schema.compiled[name]
    return walk


def _compile_walk(name: str, check: NodeCheck, schema: Schema) -> Walk | None:
    own = check(schema)
    walks = {field: _cached_walk(name, check, below) for field, below in schema.properties.items()}
    properties = {field: below for field, below in walks.items() if below is not None}
    additional = _cached_walk(name, check, schema.additional) if schema.additional is not None else None
    items = _cached_walk(name, check, schema.items) if schema.items is not None else None
    if own is None and not properties and additional is None and items is None:
        return None

    def walk(value: Json, path: str) -> list[FieldError]:
        found = own(value, path) if own is not None else []
        if isinstance(value, dict):
            for field, item in value.items():
                if field in properties:
                    found += properties[field](item, child(path, field))
                elif additional is not None and field not in schema.properties:
                    found += additional(item, key(path, field))
        elif isinstance(value, list) and items is not None:
            for position, item in enumerate(value):
                found += items(item, index(path, position))
        return found

    return walk
