"""Walks to the few places in an object that a question concerns.

Most schemas have no embedded resource and few lists with keys. A walk is compiled once per question and schema and
leads only to nodes that matter; where none does, there is no walk.
"""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.kube.fields import FieldError, child, index, key
from nodeyard.kube.json import Json
from nodeyard.schema.model import Schema

Walk = Callable[[Json, str], list[FieldError]]
"""A value and its path, to what is found there and below."""
Question = Callable[[Schema], Walk | None]
"""What to ask at a node itself; None where it does not concern the node."""


def ask(name: str, question: Question, schema: Schema, value: Json, path: str = "") -> list[FieldError]:
    walk = _walk_of(name, question, schema)
    return walk(value, path) if walk is not None else []


def _walk_of(name: str, question: Question, schema: Schema) -> Walk | None:
    if schema.programs is None:
        schema.programs = {}
    if name not in schema.programs:
        # A recursive type meets itself here and finds nothing; only built-in types are, and none of them is asked.
        schema.programs[name] = None
        schema.programs[name] = _compiled(name, question, schema)
    walk: Walk | None = schema.programs[name]
    return walk


def _compiled(name: str, question: Question, schema: Schema) -> Walk | None:
    own = question(schema)
    walks = {field: _walk_of(name, question, below) for field, below in schema.properties.items()}
    properties = {field: below for field, below in walks.items() if below is not None}
    additional = _walk_of(name, question, schema.additional) if schema.additional is not None else None
    items = _walk_of(name, question, schema.items) if schema.items is not None else None
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
