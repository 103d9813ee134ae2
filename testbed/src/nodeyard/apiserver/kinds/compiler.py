"""Compiles the table of built-in types to `Schema`.

The schema of a built-in kind has the types of its fields and how they merge. It has no requirements, restrictions of
values or defaults: for built-in kinds kube-apiserver has those in code, with its own messages, and so do the strategies
here. The only defaults that a schema keeps are those of list keys, which merging needs (`protocol` of a port).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from nodeyard.apiserver.kinds.table import definitions
from nodeyard.kube.json import Object
from nodeyard.schema.model import UNSET, Schema

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

_MERGING = ("x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key", "x-kubernetes-map-type")

_Schemas = dict[str, Schema]

_compiled: _Schemas = {}


def schema(definition: str) -> Schema:
    """Return the schema of a definition. It is compiled on first use and shared by all that refer to it."""
    if definition not in _compiled:
        # Published when complete: several servers may compile at once, each in its own thread.
        made: _Schemas = {}
        _define(definition, made)
        for name, whole in made.items():
            _compiled.setdefault(name, whole)
    return _compiled[definition]


def _define(name: str, made: _Schemas) -> Schema:
    known = _compiled.get(name) or made.get(name)
    if known is not None:
        return known
    facts = definitions()[name]
    compiled = made[name] = Schema()
    _shape(compiled, name, facts)
    # Properties are filled in place and last: a recursive type finds itself in `made`, and a copy that differs only in
    # how it merges shares the same dict.
    for field, prop in facts.get("properties", {}).items():
        compiled.properties[field] = _property(name, field, prop, made)
    return compiled


def _shape(target: Schema, name: str, facts: Object) -> None:
    target.type = facts.get("type", "")
    target.map_type = facts.get("x-kubernetes-map-type")
    if name == QUANTITY:
        target.format = "quantity"
    elif name == INT_OR_STRING:
        target.int_or_string = True
    elif target.type in ("", "object") and "properties" not in facts:
        target.preserve_unknown = True
    else:
        target.format = facts.get("format", "")


def _property(owner: str, field: str, prop: Object, made: _Schemas) -> Schema:
    compiled = _value(prop, made)
    if (owner, field) in _list_keys() and "default" in prop:
        return replace(compiled, default=prop["default"])
    return compiled


def _value(prop: Object, made: _Schemas) -> Schema:
    reference = prop.get("ref") or prop.get("$ref")
    if reference:
        shared = _define(reference, made)
        return _merging(shared, prop) if any(key in prop for key in _MERGING) else shared
    items, additional = prop.get("items"), prop.get("additionalProperties")
    kind = prop.get("type", "")
    return Schema(
        type=kind,
        items=_value(items, made) if items is not None else None,
        additional=_value(additional, made) if additional is not None else None,
        preserve_unknown=kind in ("", "object") and additional is None,
        list_type=prop.get("x-kubernetes-list-type") or ("atomic" if kind == "array" else None),
        list_map_keys=tuple(prop.get("x-kubernetes-list-map-keys", ())),
        map_type=prop.get("x-kubernetes-map-type"),
        patch_strategy=prop.get("x-kubernetes-patch-strategy", ""),
        patch_merge_key=prop.get("x-kubernetes-patch-merge-key", ""),
        format=prop.get("format", ""),
        default=UNSET,
    )


def _merging(shared: Schema, prop: Object) -> Schema:
    return replace(
        shared,
        map_type=prop.get("x-kubernetes-map-type", shared.map_type),
        patch_strategy=prop.get("x-kubernetes-patch-strategy", ""),
        patch_merge_key=prop.get("x-kubernetes-patch-merge-key", ""),
    )


@cache
def _list_keys() -> frozenset[tuple[str, str]]:
    """Return (definition, field) of every field that is a key of list items."""
    return frozenset(_keys_in(definitions()))


def _keys_in(table: Mapping[str, Object]) -> Iterator[tuple[str, str]]:
    for facts in table.values():
        for prop in facts.get("properties", {}).values():
            for key in prop.get("x-kubernetes-list-map-keys", ()):
                yield prop["items"]["ref"], key
