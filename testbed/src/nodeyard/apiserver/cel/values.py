"""The values of expressions.

Most are JSON values: `bool`, `int`, `float`, `str`, `None`, `list`, `dict`. A JSON object is used without a copy unless
its schema needs a conversion. Here are the others: unsigned integers, timestamps, durations, optionals, types, lists
with list-type set or map, objects whose fields are converted, and opaque values of the Kubernetes libraries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from nodeyard.apiserver.cel.errors import no_such_overload

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
UINT_MAX = (1 << 64) - 1


class _Missing:
    """No value; different from null."""


MISSING: Final = _Missing()


class UInt(int):
    """An unsigned integer: a type of its own, not a non-negative int."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Nanoseconds since 1970. The zone of its text matters only for printing."""

    nanoseconds: int
    zone_minutes: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: the result of `type(x)`, or `int`."""

    name: str


class Optional:
    """A value or nothing. `value` is MISSING for nothing."""

    __slots__ = ("value",)

    def __init__(self, value: Any = MISSING) -> None:
        self.value = value

    @property
    def has_value(self) -> bool:
        return self.value is not MISSING


NONE: Final = Optional()


class Opaque:
    """A value of a library's type: it has functions and no fields."""

    __slots__ = ()
    type_name: ClassVar[str]

    def equals(self, other: Any) -> bool:
        if other.__class__ is not self.__class__:
            raise no_such_overload()
        return bool(self == other)


class SetList(list[Any]):
    """A list with x-kubernetes-list-type=set: order does not count, `+` is union."""


class MapList(list[Any]):
    """A list with x-kubernetes-list-type=map: order does not count, `+` merges by key."""

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key_of(self, item: Any) -> tuple[Any, ...]:
        raw = item.raw if isinstance(item, ObjectValue) else item
        return tuple(raw.get(name) for name in self.keys) if isinstance(raw, dict) else (raw,)


class Shape(Protocol):
    """Converts the fields of an object. Names are escaped, as in expressions."""

    def field(self, raw: dict[str, Any], name: str) -> Any:
        """Return the field's value, or MISSING."""

    def names(self, raw: dict[str, Any]) -> Iterator[str]:
        """Yield the declared fields that are set."""

    def undeclared(self, raw: dict[str, Any]) -> Iterator[str]:
        """Yield the unescaped names of undeclared fields."""


class ObjectValue:
    """An object with a schema, whose fields are converted when they are read; lists and maps only once."""

    __slots__ = ("_converted", "raw", "shape")

    def __init__(self, raw: dict[str, Any], shape: Shape) -> None:
        self.raw = raw
        self.shape = shape
        self._converted: dict[str, Any] | None = None

    def find(self, name: Any) -> Any:
        if self._converted is not None and name in self._converted:
            return self._converted[name]
        value = self.shape.field(self.raw, name)
        if isinstance(value, list | dict):
            self._converted = {**(self._converted or {}), name: value}
        return value

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[str]:
        return self.shape.names(self.raw)


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    ObjectValue: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: Any) -> str:
    name = _NAMES.get(value.__class__)
    return name if name is not None else str(value.type_name)


def find(container: Any, key: Any) -> Any:
    """Return the value of a key in a map or object, or MISSING."""
    if container.__class__ is not dict:
        return container.find(key)
    if key.__class__ is not str and not _has_key(container, key):
        return MISSING
    return container.get(key, MISSING)


def _has_key(container: dict[Any, Any], key: Any) -> bool:
    """True if the key exists; unlike in a dict, true is not 1."""
    try:
        if key not in container:
            return False
    except TypeError:
        return False
    is_bool = key.__class__ is bool
    return key not in (0, 1) or any(k == key and (k.__class__ is bool) is is_bool for k in container)


def is_map(value: Any) -> bool:
    return value.__class__ is dict or value.__class__ is ObjectValue
