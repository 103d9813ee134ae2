"""Objects of built-in kinds that come as protocol buffers, the way Go's typed clients send them.

Such a body is four magic bytes and an envelope with apiVersion, kind and the bytes of the object, which cannot be read
without knowing what the numbers of its fields mean. `messages.json`, written by `make builtins`, knows: it has each
message's fields with their number, JSON name, shape and type. A field without a name belongs to its parent, as embedded
structs do in JSON.

What comes out is what the same client would have sent as JSON. Go writes fields here that JSON leaves out when they are
empty, so the object takes the way through its type (kinds/decoding) that one in JSON takes.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from nodeyard.apiserver.kinds import decoding, wire
from nodeyard.apiserver.kinds.table import definition_of, struct_name
from nodeyard.kube.json import Json, Object
from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_micro

PATH = Path(__file__).with_name("messages.json")

_MAGIC = b"k8s\x00"
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
# A schema in a CRD takes two messages for each level; objects that people write stay far below.
_DEEPEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EnvelopeError(ValueError):
    """Not even apiVersion and kind can be read."""


class ContentError(ValueError):
    """The object in the envelope cannot be read."""

    def __init__(self, kind: Kind, why: str) -> None:
        super().__init__(why)
        self.kind = kind


class Kind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Field(msgspec.Struct, frozen=True, array_like=True):
    """One row of the table."""

    number: int
    name: str
    shape: Literal["one", "list", "map", "inline"]
    type: str
    """A scalar of protocol buffers, `json` in bytes, or the definition of a message; of a map the values' type."""


class Messages(msgspec.Struct, frozen=True):
    kubernetes: str
    messages: dict[str, tuple[Field, ...]]


@cache
def messages() -> Messages:
    return msgspec.json.decode(PATH.read_bytes(), type=Messages)


def decode(body: bytes, endpoint: Kind) -> Object:
    """The object in a request's body; what its envelope leaves out is what the endpoint takes.

    Raises EnvelopeError or ContentError.
    """
    try:
        kind, raw = _open(body, endpoint)
    except wire.WireError as fault:
        raise EnvelopeError(str(fault)) from fault
    definition = _DELETE_OPTIONS if kind.kind == "DeleteOptions" else definition_of(*kind)
    if definition is None:
        scheme = 'in scheme "pkg/runtime/scheme.go:111"'
        raise ContentError(kind, f'no kind "{kind.kind}" is registered for version "{kind.api_version}" {scheme}')
    try:
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, **_message(definition).read(raw, 0)}
        return decoding.decode(definition, obj).object
    except ValueError as fault:
        raise ContentError(kind, str(fault)) from fault


def _open(body: bytes, endpoint: Kind) -> tuple[Kind, bytes]:
    if not body:
        raise EnvelopeError("empty data")
    if not body.startswith(_MAGIC):
        raise EnvelopeError(
            f"provided data does not appear to be a protobuf message, expected prefix [{' '.join(map(str, _MAGIC))}]"
        )
    if body == _MAGIC:
        raise EnvelopeError("empty body")
    said = {1: "", 2: ""}
    raw = b""
    for number, form, value in wire.fields(body[len(_MAGIC) :], "Unknown"):
        if number == 1:
            wire.expect(form, wire.LENGTH, "typeMeta")
            for inner, inner_form, text in wire.fields(value, "TypeMeta"):
                if inner in said:
                    wire.expect(inner_form, wire.LENGTH, ("", "APIVersion", "kind")[inner])
                    said[inner] = _text(text)
        elif number == 2:
            wire.expect(form, wire.LENGTH, "raw")
            raw = value
    return _kind(said[1], said[2], endpoint), raw


def _kind(api_version: str, kind: str, endpoint: Kind) -> Kind:
    """An apiVersion with two slashes counts as none, as it does in Go."""
    group, _, version = api_version.rpartition("/")
    if not version or "/" in group:
        group, version = endpoint.group, endpoint.version
    return Kind(group, version, kind or endpoint.kind)


# messages

Store = Callable[[Object, int, Any, int], None]
"""Puts one field's value into the object: object, wire type, value, depth."""


class _Message:
    """How one message is read; its fields are prepared when first used, so that messages may be recursive."""

    __slots__ = ("_convert", "_definition", "_fields", "_name")

    def __init__(self, definition: str) -> None:
        self._definition = definition
        self._name = struct_name(definition)
        self._convert = _CONVERSIONS.get(self._name)
        self._fields: Mapping[int, Store] | None = None

    @property
    def is_plain(self) -> bool:
        """A JSON object with the message's fields, and no form of its own."""
        return self._convert is None

    def read(self, data: bytes, depth: int) -> Any:
        found: Object = {}
        self.fill(found, data, depth)
        return found if self._convert is None else self._convert(found)

    def fill(self, target: Object, data: bytes, depth: int) -> None:
        if depth > _DEEPEST:
            raise wire.WireError(f"proto: {self._name}: nested deeper than {_DEEPEST} messages")
        stores = self._fields
        if stores is None:
            rows = messages().messages[self._definition]
            stores = self._fields = {row.number: _store(row) for row in rows}
        for number, form, value in wire.fields(data, self._name):
            store = stores.get(number)
            if store is not None:
                store(target, form, value, depth)


@cache
def _message(definition: str) -> _Message:
    return _Message(definition)


class _Type(NamedTuple):
    """What a field holds: how it is delimited, and what becomes of the value at a depth."""

    form: int
    read: Callable[[Any, int], Json]


def _type(name: str) -> _Type:
    scalar = _SCALARS.get(name)
    if scalar is not None:
        return _Type(scalar[0], _ignoring_depth(scalar[1]))
    message = _message(name)
    return _Type(wire.LENGTH, lambda data, depth: message.read(data, depth + 1))


def _ignoring_depth(convert: Callable[[Any], Json]) -> Callable[[Any, int], Json]:
    return lambda value, _: convert(value)


def _store(row: Field) -> Store:
    if row.shape == "map":
        return _map(row)
    if row.shape == "list":
        return _list(row)
    if row.type not in _SCALARS and _message(row.type).is_plain:
        return _nested(row)
    return _single(row)


def _single(row: Field) -> Store:
    name, (wanted, read) = row.name, _type(row.type)

    def store(target: Object, form: int, value: Any, depth: int) -> None:
        wire.expect(form, wanted, name)
        target[name] = read(value, depth)

    return store


def _nested(row: Field) -> Store:
    """A message that comes twice is one message in two parts."""
    name, message, is_inlined = row.name, _message(row.type), row.shape == "inline"
    # Go embeds the struct, and so calls the field by the type.
    go_name = struct_name(row.type) if is_inlined or name == "metadata" else name

    def store(target: Object, form: int, value: Any, depth: int) -> None:
        wire.expect(form, wire.LENGTH, go_name)
        message.fill(target if is_inlined else target.setdefault(name, {}), value, depth + 1)

    return store


def _list(row: Field) -> Store:
    name, (wanted, read) = row.name, _type(row.type)

    def store(target: Object, form: int, value: Any, depth: int) -> None:
        items = target.setdefault(name, [])
        if wanted == wire.VARINT and form == wire.LENGTH:
            items.extend(read(number, depth) for number in wire.packed(value))
            return
        wire.expect(form, wanted, name)
        items.append(read(value, depth))

    return store


def _map(row: Field) -> Store:
    """Each entry is a message of a key and a value; the one that is missing is empty."""
    name, read = row.name, _type(row.type).read

    def store(target: Object, form: int, value: Any, depth: int) -> None:
        wire.expect(form, wire.LENGTH, name)
        parts = {1: b"", 2: b""}
        for number, inner, part in wire.fields(value, name):
            if number in parts:
                wire.expect(inner, wire.LENGTH, name)
                parts[number] = part
        target.setdefault(name, {})[_text(parts[1])] = read(parts[2], depth)

    return store


# scalars


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _double(data: bytes) -> Json:
    """Whole numbers as such: Go writes no trailing `.0`."""
    value: float = struct.unpack("<d", data)[0]
    if not math.isfinite(value):
        raise ValueError(f"json: unsupported value: {value}")
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _json(data: bytes) -> Json:
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as fault:
        raise ValueError(str(fault)) from fault
    except RecursionError as fault:
        raise ValueError("exceeded max depth") from fault


_SCALARS: dict[str, tuple[int, Callable[[Any], Json]]] = {
    "bool": (wire.VARINT, bool),
    "bytes": (wire.LENGTH, lambda data: base64.b64encode(data).decode()),
    "double": (wire.FIXED64, _double),
    "int32": (wire.VARINT, lambda value: wire.signed(value, 32)),
    "int64": (wire.VARINT, lambda value: wire.signed(value, 64)),
    "json": (wire.LENGTH, _json),
    "string": (wire.LENGTH, _text),
}

# messages with a JSON form of their own, made from their fields


def _time(fields: Object) -> Json:
    """Whole seconds; an empty message is the zero time."""
    return format_rfc3339(_moment(fields, 0)) if fields else None


def _micro_time(fields: Object) -> Json:
    if not fields:
        return None
    # Towards zero, as Go truncates.
    return format_rfc3339_micro(_moment(fields, int(fields.get("nanos", 0) / 1000)))


def _moment(fields: Object, microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=fields.get("seconds", 0), microseconds=microseconds)
    except OverflowError:
        raise ValueError("Time: year outside of range [1,9999]") from None


def _int_or_string(fields: Object) -> Json:
    kind = fields.get("type", 0)
    if kind == 0:
        return fields.get("intVal", 0)
    if kind == 1:
        return fields.get("strVal", "")
    raise ValueError("impossible IntOrString.Type")


def _only(fields: Object) -> Json:
    """The value of the only field there is."""
    return next(iter(fields.values()), None)


_CONVERSIONS: Mapping[str, Callable[[Object], Json]] = {
    "ExtraValue": lambda fields: fields.get("items", []),
    "FieldsV1": _only,
    "IntOrString": _int_or_string,
    "JSON": _only,
    "JSONSchemaPropsOrArray": lambda fields: fields.get("jSONSchemas") or fields.get("schema"),
    "JSONSchemaPropsOrBool": lambda fields: fields.get("schema", fields.get("allows", False)),
    "JSONSchemaPropsOrStringArray": lambda fields: fields.get("property") or fields.get("schema"),
    "MicroTime": _micro_time,
    "Quantity": lambda fields: fields.get("string", "0"),
    "RawExtension": _only,
    "Time": _time,
}
