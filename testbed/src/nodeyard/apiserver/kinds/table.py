"""The table of built-in types, as `make builtins` wrote it.

`types.json` maps a definition's name to its facts in OpenAPI's vocabulary, without descriptions; references are the
bare name of the definition, under `ref` where OpenAPI wraps it in `allOf`. Four keys are ours. `always` names the
fields that Go writes even when they are empty, `pointers` those whose zero value is a value of its own. `go` has the Go
types that cannot be told from the rest, `inlined` the embedded struct a field comes from: decoding errors name both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from nodeyard.kube.json import Object

PATH = Path(__file__).with_name("types.json")


class Table(msgspec.Struct, frozen=True):
    kubernetes: str
    definitions: dict[str, Object]


@cache
def table() -> Table:
    return msgspec.json.decode(PATH.read_bytes(), type=Table)


def definitions() -> Mapping[str, Object]:
    return table().definitions


def definition_of(group: str, version: str, kind: str) -> str | None:
    """The definition of a kind, also of those that are never stored: Scale, Eviction, Binding, reviews, options."""
    return _kinds().get((group, version, kind))


@cache
def _kinds() -> Mapping[tuple[str, str, str], str]:
    return {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, facts in definitions().items()
        for kind in facts.get("x-kubernetes-group-version-kind", ())
    }


def struct_name(definition: str) -> str:
    """The Go struct behind a definition, as decoding errors name it."""
    return definition.rpartition(".")[2]


_BASIC = {"string": "string", "boolean": "bool", "number": "float64"}


def go_type(prop: Object) -> str:
    """The Go type of a field as far as OpenAPI tells it."""
    if reference := prop.get("ref") or prop.get("$ref"):
        package, _, name = reference.rpartition(".")
        return f"{package.rpartition('.')[2]}.{name}"
    kind = prop.get("type", "")
    if kind == "array":
        return f"[]{go_type(prop['items'])}"
    if kind == "object":
        return f"map[string]{go_type(prop['additionalProperties'])}"
    if prop.get("format") == "byte":
        return "[]uint8"
    return _BASIC.get(kind) or str(prop.get("format", kind))
