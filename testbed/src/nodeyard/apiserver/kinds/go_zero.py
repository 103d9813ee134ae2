"""Zero values: what Go writes of an object before anything is set.

A custom resource then has only its type. A built-in kind is a Go struct, and some members of a struct are always
written: a Deployment that is being created already has a `spec` and a `strategy`, so its creator owns only the fields
in them.
"""

from __future__ import annotations

from functools import lru_cache

from nodeyard.apiserver.kinds.table import definition_of, definitions
from nodeyard.kube.json import Json, Object

_SCALARS = {"string": "", "integer": 0, "number": 0, "boolean": False}


@lru_cache(maxsize=512)
def zero_object(api_version: str, kind: str) -> Object:
    definition = _definition(api_version, kind)
    return {"apiVersion": api_version, "kind": kind, **(zero_struct(definition) if definition else {})}


@lru_cache(maxsize=512)
def is_built_in(api_version: str, kind: str) -> bool:
    return _definition(api_version, kind) is not None


def _definition(api_version: str, kind: str) -> str | None:
    group, _, version = api_version.rpartition("/")
    return definition_of(group, version, kind)


def zero_struct(definition: str) -> Object:
    """Return the members of a definition that are always written, without defaults."""
    facts = definitions()[definition]
    pointers = facts.get("pointers", ())
    properties = facts.get("properties", {})
    return {
        name: None if name in pointers else _zero(properties[name])
        for name in facts.get("always", ())
        if name in properties
    }


def _zero(prop: Object) -> Json:
    reference = prop.get("ref") or prop.get("$ref")
    if not reference:
        return _SCALARS.get(prop.get("type", ""))
    facts = definitions()[reference]
    return zero_struct(reference) if "properties" in facts else None
