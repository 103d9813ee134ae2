"""The types of CEL as the checker sees them.

A type is a kind, a name and parameters. Object types are compared by name alone; they carry `Fields`, which may declare
their fields lazily from a schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


class Kind(Enum):
    SCALAR = "scalar"
    NULL = "null"
    DYN = "dyn"
    ERROR = "error"
    LIST = "list"
    MAP = "map"
    TYPE = "type"
    OBJECT = "object"
    OPAQUE = "opaque"
    PARAMETER = "parameter"


class Fields(Protocol):
    """The fields of an object type."""

    def find(self, name: str) -> Type | None: ...


class _NoFields:
    def find(self, name: str) -> Type | None:
        return None


@dataclass(frozen=True, slots=True)
class Type:
    kind: Kind
    name: str
    parameters: tuple[Type, ...] = ()
    fields: Fields = field(default=_NoFields(), compare=False, repr=False)

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


BOOL = Type(Kind.SCALAR, "bool")
INT = Type(Kind.SCALAR, "int")
UINT = Type(Kind.SCALAR, "uint")
DOUBLE = Type(Kind.SCALAR, "double")
STRING = Type(Kind.SCALAR, "string")
BYTES = Type(Kind.SCALAR, "bytes")
DURATION = Type(Kind.SCALAR, "duration")
TIMESTAMP = Type(Kind.SCALAR, "timestamp")
NULL = Type(Kind.NULL, "null")
DYN = Type(Kind.DYN, "dyn")
ERROR = Type(Kind.ERROR, "!error!")
TYPE = Type(Kind.TYPE, "type")

SCALARS = {t.name: t for t in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, DURATION, TIMESTAMP)}
_OPTIONAL = "optional_type"


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def type_of(parameter: Type) -> Type:
    return Type(Kind.TYPE, "type", (parameter,))


def optional_of(value: Type) -> Type:
    return Type(Kind.OPAQUE, _OPTIONAL, (value,))


def parameter(name: str) -> Type:
    return Type(Kind.PARAMETER, name)


def object_type(name: str, fields: Fields) -> Type:
    return Type(Kind.OBJECT, name, (), fields)


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    """Return the type inside an optional and True, or the type itself and False."""
    if t.kind is Kind.OPAQUE and t.name == _OPTIONAL:
        return t.parameters[0], True
    return t, False


def is_dyn(t: Type) -> bool:
    return t.kind is Kind.DYN


def is_dyn_or_error(t: Type) -> bool:
    return t.kind is Kind.DYN or t.kind is Kind.ERROR


_TOKEN = re.compile(r"\s*([\w.]+|[(),])")
# Types of the Kubernetes libraries that are objects without fields; any other dotted name is opaque.
_OBJECT_PREFIX = "kubernetes."


def parse_type(text: str) -> Type:
    """Parse a type of library declarations: `list(A)`, `map(string, int)`, `optional(V)`, `net.IP`.

    A single capital letter is a type parameter.
    """
    tokens = _TOKEN.findall(text)
    parsed, rest = _parse(tokens)
    if rest:
        raise ValueError(f"not a type: {text}")
    return parsed


def _parse(tokens: list[str]) -> tuple[Type, list[str]]:
    name, rest = tokens[0], tokens[1:]
    parameters: list[Type] = []
    if rest and rest[0] == "(":
        while rest[0] != ")":
            inner, rest = _parse(rest[1:])
            parameters.append(inner)
        rest = rest[1:]
    return _named(name, tuple(parameters)), rest


def _named(name: str, parameters: tuple[Type, ...]) -> Type:
    if len(name) == 1 and name.isupper():
        return parameter(name)
    simple = {"dyn": DYN, "null": NULL, "type": TYPE, **SCALARS}.get(name)
    if simple is not None:
        return Type(simple.kind, simple.name, parameters) if parameters else simple
    if name == "optional":
        return Type(Kind.OPAQUE, _OPTIONAL, parameters)
    kinds = {"list": Kind.LIST, "map": Kind.MAP}
    kind = kinds.get(name, Kind.OBJECT if name.startswith(_OBJECT_PREFIX) else Kind.OPAQUE)
    return Type(kind, name, parameters)
