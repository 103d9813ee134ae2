"""Decoding of built-in objects as Go does: from JSON into a struct and back.

kube-apiserver decodes every built-in object into a struct and encodes it again. That drops unknown fields and empty
optional ones, adds the fields that Go always writes, makes quantities and times canonical, and refuses values of the
wrong type. All of it happens here in one walk, which shares what it does not change and applies the defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from nodeyard.apiserver.kinds.canonical import UnreadableError, canonical_base64, canonical_micro_time, canonical_time
from nodeyard.apiserver.kinds.catalogue import DEFAULTS
from nodeyard.apiserver.kinds.table import definitions, go_type, struct_name
from nodeyard.kube import quantity
from nodeyard.kube.json import Json, Object

Unknown = list[str]
"""Paths of fields that the type does not have, in the form of strict decoding."""
Decode = Callable[[Json, Unknown], Json]

_DROP: Any = object()


class MalformedError(ValueError):
    """A value does not fit its type; the text is the message of Go's decoder."""


class _MismatchError(Exception):
    """A wrong type; the structs around it add the path while it propagates."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(found, wanted)
        self.found = found
        self.wanted = wanted
        self.struct = ""
        self.path: list[str] = []

    def text(self) -> str:
        if not self.struct:
            return f"json: cannot unmarshal {self.found} into Go value of type {self.wanted}"
        where = f"{self.struct}.{'.'.join(reversed(self.path))}"
        return f"json: cannot unmarshal {self.found} into Go struct field {where} of type {self.wanted}"


@dataclass(frozen=True, slots=True)
class Decoded:
    object: Object
    unknown: list[str]


def decode(definition: str, value: Json) -> Decoded:
    """Raises MalformedError."""
    unknown: Unknown = []
    try:
        return Decoded(decoder(definition)(value, unknown), unknown)
    except _MismatchError as mismatch:
        raise MalformedError(mismatch.text()) from None
    except (UnreadableError, quantity.QuantityError) as error:
        raise MalformedError(str(error)) from None


@cache
def decoder(definition: str) -> Decode:
    """Return the decoder of a definition. Structs prepare their fields on first use, so types may be recursive."""
    special = _SPECIAL.get(struct_name(definition))
    return special or _Struct(definition)


def zero(definition: str) -> Object:
    """Return what Go writes of an empty struct, with defaults."""
    empty: Object = decoder(definition)({}, [])
    return empty


class _Struct:
    """Decoder of one Go struct."""

    __slots__ = ("_always", "_default", "_definition", "_fields", "_inlined", "_nulls")

    def __init__(self, definition: str) -> None:
        self._definition = definition
        self._fields: dict[str, Decode] | None = None
        self._always: list[tuple[str, Json]] = []
        self._inlined: dict[str, str] = {}
        self._nulls: frozenset[str] = frozenset()
        self._default = DEFAULTS.get(definition)

    def __call__(self, value: Json, unknown: Unknown) -> Json:
        fields = self._fields
        if fields is None:
            fields = self._prepare()
        if value.__class__ is not dict:
            if value is None:
                value = {}
            else:
                raise _MismatchError(_kind(value), go_type({"ref": self._definition}))
        changes: dict[str, Json] = {}
        for name, child in value.items():
            field = fields.get(name)
            if field is None:
                unknown.append(name)
                changes[name] = _DROP
                continue
            if child is None:
                if name not in self._nulls:
                    changes[name] = _DROP
                continue
            before = len(unknown)
            try:
                decoded = field(child, unknown)
            except _MismatchError as mismatch:
                self._locate(mismatch, name)
                raise
            if decoded is not child:
                changes[name] = decoded
            if len(unknown) > before:
                _prefix(unknown, before, name)
        written = self._written(value, changes)
        return written if self._default is None else self._default(written)

    def _written(self, value: Object, changes: dict[str, Json]) -> Object:
        always = [entry for entry in self._always if entry[0] not in value or changes.get(entry[0]) is _DROP]
        if not changes and not always:
            return value
        written = {**value, **changes} if changes else dict(value)
        for name, decoded in changes.items():
            if decoded is _DROP:
                del written[name]
        written.update(always)
        return written

    def _locate(self, mismatch: _MismatchError, name: str) -> None:
        if not mismatch.struct:
            mismatch.struct = struct_name(self._definition)
        mismatch.path.append(name)
        if name in self._inlined:
            mismatch.path.append(self._inlined[name])

    def _prepare(self) -> dict[str, Decode]:
        facts = definitions()[self._definition]
        always, pointers = set(facts.get("always", ())), set(facts.get("pointers", ()))
        named = facts.get("go", {})
        self._inlined = facts.get("inlined", {})
        fields: dict[str, Decode] = {}
        for name, prop in facts.get("properties", {}).items():
            wanted = named.get(name) or go_type(prop)
            keeps_empty = name in always or name in pointers
            fields[name] = _value(prop, wanted, keeps_empty=keeps_empty)
        self._always = [
            (name, None if name in pointers else _empty(facts["properties"][name])) for name in sorted(always)
        ]
        self._nulls = frozenset(name for name, empty in self._always if empty is None)
        # Assigned last: several servers may share this, each in its own thread.
        self._fields = fields
        return fields


def _prefix(unknown: Unknown, start: int, name: str) -> None:
    for place in range(start, len(unknown)):
        rest = unknown[place]
        unknown[place] = f"{name}{rest}" if rest.startswith("[") else f"{name}.{rest}"


def _empty(prop: Object) -> Json:
    reference = prop.get("ref") or prop.get("$ref")
    if reference:
        name = struct_name(reference)
        return _ZERO[name] if name in _ZERO else zero(reference)
    return {"string": "", "integer": 0, "number": 0, "boolean": False}.get(prop.get("type", ""))


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    return {str: "string", dict: "object", list: "array"}.get(value.__class__, "number")


# fields, by type


def _value(prop: Object, wanted: str, *, keeps_empty: bool) -> Decode:
    reference = prop.get("ref") or prop.get("$ref")
    if reference:
        return decoder(reference)
    kind = prop.get("type", "")
    if kind == "array":
        return _array(prop, wanted, keeps_empty)
    if kind == "object":
        return _map(prop, wanted, keeps_empty)
    if prop.get("format") == "byte":
        return _bytes(wanted, keeps_empty)
    return _scalar(prop, wanted, keeps_empty)


def _scalar(prop: Object, wanted: str, keeps_empty: bool) -> Decode:
    kind = prop.get("type", "")
    if kind == "integer":
        return _integer(wanted, keeps_empty, 31 if prop.get("format") == "int32" else 63)
    if kind == "number":
        return _number(wanted, keeps_empty)
    expected = bool if kind == "boolean" else str

    def decode_scalar(value: Json, unknown: Unknown) -> Json:
        if value.__class__ is not expected:
            raise _MismatchError(_kind(value), wanted)
        return value if value or keeps_empty else _DROP

    return decode_scalar


def _integer(wanted: str, keeps_empty: bool, bits: int) -> Decode:
    lowest, highest = -(2**bits), 2**bits - 1

    def decode_integer(value: Json, unknown: Unknown) -> Json:
        if value.__class__ is not int:
            found = f"number {value}" if value.__class__ is float else _kind(value)
            raise _MismatchError(found, wanted)
        if not lowest <= value <= highest:
            raise _MismatchError(f"number {value}", wanted)
        return value if value or keeps_empty else _DROP

    return decode_integer


def _number(wanted: str, keeps_empty: bool) -> Decode:
    def decode_number(value: Json, unknown: Unknown) -> Json:
        if value.__class__ is not int and value.__class__ is not float:
            raise _MismatchError(_kind(value), wanted)
        return value if value or keeps_empty else _DROP

    return decode_number


def _bytes(wanted: str, keeps_empty: bool) -> Decode:
    def decode_bytes(value: Json, unknown: Unknown) -> Json:
        if value.__class__ is not str:
            raise _MismatchError(_kind(value), wanted)
        return _same(canonical_base64(value), value) if value or keeps_empty else _DROP

    return decode_bytes


def _array(prop: Object, wanted: str, keeps_empty: bool) -> Decode:
    item = _value(prop["items"], wanted.removeprefix("[]"), keeps_empty=True)
    empty = _empty(prop["items"]) if "type" in prop["items"] else None

    def decode_array(value: Json, unknown: Unknown) -> Json:
        if value.__class__ is not list:
            raise _MismatchError(_kind(value), wanted)
        if not value:
            return value if keeps_empty else _DROP
        decoded = []
        is_changed = False
        for position, entry in enumerate(value):
            before = len(unknown)
            new = empty if entry is None and empty is not None else item(entry, unknown)
            is_changed = is_changed or new is not entry
            decoded.append(new)
            if len(unknown) > before:
                _prefix(unknown, before, f"[{position}]")
        return decoded if is_changed else value

    return decode_array


def _map(prop: Object, wanted: str, keeps_empty: bool) -> Decode:
    inner = prop.get("additionalProperties")
    if inner is None:
        return _anything
    element = wanted.partition("]")[2] if wanted.startswith("map[") else go_type(inner)
    item = _resource_quantity if wanted == "v1.ResourceList" else _value(inner, element, keeps_empty=True)
    empty = _empty(inner) if "type" in inner else None

    def decode_map(value: Json, unknown: Unknown) -> Json:
        if value.__class__ is not dict:
            raise _MismatchError(_kind(value), wanted)
        if not value:
            return value if keeps_empty else _DROP
        changes = {}
        for name, entry in value.items():
            before = len(unknown)
            new = empty if entry is None and empty is not None else item(entry, unknown)
            if new is not entry:
                changes[name] = new
            if len(unknown) > before:
                _prefix(unknown, before, name)
        return {**value, **changes} if changes else value

    return decode_map


# types with a JSON form of their own


def _anything(value: Json, unknown: Unknown) -> Json:
    return value


def _time(value: Json, unknown: Unknown) -> Json:
    if value.__class__ is not str:
        raise _MismatchError(_kind(value), "string")
    return _same(canonical_time(value), value)


def _micro_time(value: Json, unknown: Unknown) -> Json:
    if value.__class__ is not str:
        raise _MismatchError(_kind(value), "string")
    return _same(canonical_micro_time(value), value)


def _quantity(value: Json, unknown: Unknown) -> Json:
    if value is None:
        return "0"
    return _same(quantity.canonical(value if value.__class__ is str else str(value)), value)


def _resource_quantity(value: Json, unknown: Unknown) -> Json:
    """A quantity in a ResourceList, rounded up to thousandths."""
    if value is None:
        return "0"
    return _same(quantity.canonical_to_milli(value if value.__class__ is str else str(value)), value)


def _same(canonical: str, value: Json) -> Json:
    """Return the given value if it is canonical, so that an unchanged object stays the same object."""
    return value if canonical == value else canonical


def _int_or_string(value: Json, unknown: Unknown) -> Json:
    if value.__class__ is str:
        return value
    if value.__class__ is int and -(2**31) <= value < 2**31:
        return value
    raise _MismatchError(f"number {value}" if value.__class__ in (int, float) else _kind(value), "int32")


def _schema_or_bool(value: Json, unknown: Unknown) -> Json:
    return value if value.__class__ is bool else _nested_schema(value)


def _schema_or_array(value: Json, unknown: Unknown) -> Json:
    return [_nested_schema(entry) for entry in value] if value.__class__ is list else _nested_schema(value)


def _schema_or_strings(value: Json, unknown: Unknown) -> Json:
    return value if value.__class__ is list else _nested_schema(value)


def _nested_schema(value: Json) -> Json:
    """Decode a nested schema, whose custom unmarshaler drops unknown fields silently."""
    return decoder("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")(value, [])


_SPECIAL: dict[str, Decode] = {
    "FieldsV1": _anything,
    "IntOrString": _int_or_string,
    "JSON": _anything,
    "JSONSchemaPropsOrArray": _schema_or_array,
    "JSONSchemaPropsOrBool": _schema_or_bool,
    "JSONSchemaPropsOrStringArray": _schema_or_strings,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "RawExtension": _anything,
    "Time": _time,
}
_ZERO: dict[str, Json] = {"IntOrString": 0, "MicroTime": None, "Quantity": "0", "RawExtension": None, "Time": None}
