"""Declarations of functions: name, parameter types, result type and Python implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nodeyard.apiserver.cel.errors import EvaluationError, no_such_overload
from nodeyard.apiserver.cel.types import Kind, Type, parse_type
from nodeyard.apiserver.cel.values import Duration, Timestamp, TypeValue, UInt, is_map, type_name

Implementation = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Overload:
    """One overload of a function. For a member the first parameter is the receiver."""

    name: str
    parameters: tuple[Type, ...]
    result: Type
    is_member: bool
    implementation: Implementation
    is_total: bool = False
    """True if the implementation checks the types of its arguments itself."""

    @cached_property
    def type_parameters(self) -> frozenset[str]:
        found: set[str] = set()
        for t in (*self.parameters, self.result):
            _collect_parameters(t, found)
        return frozenset(found)

    def accepts(self, arguments: Sequence[Any]) -> bool:
        """True if the overload accepts these values by their run-time types."""
        return len(arguments) == len(self.parameters) and all(map(is_instance, arguments, self.parameters))


@dataclass
class Function:
    name: str
    overloads: list[Overload] = field(default_factory=list)


class Functions:
    """All functions of an environment by name."""

    def __init__(self, *libraries: Iterable[Overload]) -> None:
        self._functions: dict[str, Function] = {}
        for library in libraries:
            for overload in library:
                function = self._functions.setdefault(overload.name, Function(overload.name))
                function.overloads.append(overload)

    def __iter__(self) -> Iterator[Overload]:
        for declared in self._functions.values():
            yield from declared.overloads

    def find(self, name: str) -> Function | None:
        return self._functions.get(name)


def mismatch(name: str, values: Sequence[Any]) -> EvaluationError:
    """Return the error of values that no overload accepts."""
    return no_such_overload(f"{name}({', '.join(map(type_name, values))})")


def call_overload(overloads: Sequence[Overload], values: Sequence[Any]) -> Any:
    """Call the first overload that accepts the values."""
    for overload in overloads:
        if overload.is_total or overload.accepts(values):
            return overload.implementation(*values)
    raise mismatch(overloads[0].name, values)


def function(name: str, signature: str, implementation: Implementation) -> Overload:
    """Declare a function `name(...)` with a signature such as `string, int -> bool`."""
    return _overload(name, signature, implementation, is_member=False)


def member(name: str, signature: str, implementation: Implementation) -> Overload:
    """Declare a member `receiver.name(...)`; the receiver is first in the signature."""
    return _overload(name, signature, implementation, is_member=True)


def operators(name: str, signatures: str, implementation: Implementation, *, is_member: bool = False) -> list[Overload]:
    """Declare overloads with one implementation, one signature per line."""
    return [
        _overload(name, line, implementation, is_member=is_member, is_total=True)
        for line in signatures.strip().splitlines()
    ]


def _overload(
    name: str, signature: str, implementation: Implementation, *, is_member: bool, is_total: bool = False
) -> Overload:
    given, _, returned = signature.partition("->")
    parameters = tuple(parse_type(part) for part in _split(given))
    return Overload(name, parameters, parse_type(returned), is_member, implementation, is_total)


def _split(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    return [part for part in parts if part.strip()]


def _collect_parameters(t: Type, found: set[str]) -> None:
    if t.kind is Kind.PARAMETER:
        found.add(t.name)
    for inner in t.parameters:
        _collect_parameters(inner, found)


_CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "duration": Duration,
    "timestamp": Timestamp,
}


def is_instance(value: Any, t: Type) -> bool:
    """True if the value is of the type. Only the first element of a list is checked, as on the API server."""
    match t.kind:
        case Kind.SCALAR:
            return value.__class__ is _CLASSES[t.name]
        case Kind.LIST:
            return isinstance(value, list) and (not value or is_instance(value[0], t.parameters[0]))
        case Kind.MAP:
            return is_map(value)
        case Kind.TYPE:
            return value.__class__ is TypeValue
        case Kind.NULL:
            return value is None
        case Kind.OBJECT | Kind.OPAQUE:
            return type_name(value) == t.name
        case _:
            return True
