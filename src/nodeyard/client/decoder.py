"""Decoder of objects, list pages and watch events into the caller's type.

An object that does not fit the type becomes `Malformed`, with its metadata: it affects its own key, never the list or
the stream.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar, get_args

import msgspec

from nodeyard.client.errors import Status, error_from_status
from nodeyard.kube import json_depth
from nodeyard.kube.json import read_float

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_TYPES = get_args(EventType)
# The server writes `type` first, so these lines are decoded in one step.
_CHANGES = tuple(b'{"type":"%s"' % type.encode() for type in _TYPES)


class PartialMetadata(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None


class Partial(msgspec.Struct, frozen=True):
    """Any object, by its metadata only."""

    metadata: PartialMetadata = PartialMetadata()


class Malformed(msgspec.Struct, frozen=True):
    """An object that could not be decoded: its metadata and the error."""

    type: str
    """ADDED, MODIFIED or DELETED in a watch, LISTED in a list."""
    namespace: str
    name: str
    uid: str
    resource_version: str
    error: str
    is_deleting: bool = False
    finalizers: tuple[str, ...] = ()


decode_partial = msgspec.json.Decoder(Partial).decode


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder_for(type: Any) -> msgspec.json.Decoder[Any]:
    """Return the cached decoder of a type: creating one costs more than using it."""
    decoder = _decoders.get(type)
    if decoder is None:
        decoder = _decoders[type] = msgspec.json.Decoder(type, float_hook=read_float)
    return decoder


def decode_as(type: type[T], body: bytes) -> T:
    """Decode JSON; raise msgspec.DecodeError for invalid JSON and msgspec.ValidationError for a type mismatch."""
    try:
        decoded: T = decoder_for(type).decode(body)
        return decoded
    except RecursionError:
        raise msgspec.ValidationError(json_depth.TOO_DEEP) from None


def malformed(raw: bytes | msgspec.Raw, error: str, type: str) -> Malformed:
    metadata = decode_partial(raw).metadata
    return Malformed(
        type,
        metadata.namespace,
        metadata.name,
        metadata.uid,
        metadata.resource_version,
        error,
        is_deleting=metadata.deletion_timestamp is not None,
        finalizers=metadata.finalizers or (),
    )


class Page(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]
    resource_version: str
    next: str = ""
    """The continue token of the next page; empty on the last."""
    malformed: tuple[Malformed, ...] = ()


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, Generic[T], frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[T] | None = None


_LIST_OF: Any = _List


def decode_page(type: type[T], body: bytes) -> Page[T]:
    try:
        decoded: _List[T] = decoder_for(_LIST_OF[type]).decode(body)
        return Page(decoded.items or [], decoded.metadata.resource_version, decoded.metadata.continue_)
    except (msgspec.ValidationError, RecursionError):
        return _decode_one_by_one(type, body)


def _decode_one_by_one(type: type[T], body: bytes) -> Page[T]:
    decode = decoder_for(_LIST_OF[msgspec.Raw]).decode
    raw: _List[msgspec.Raw]
    try:
        raw = decode(body)
    except RecursionError:
        raw = decode(json_depth.shallow(body))
    items: list[T] = []
    broken: list[Malformed] = []
    for item in raw.items or ():
        if json_depth.is_cut(bytes(item)):
            broken.append(malformed(item, json_depth.TOO_DEEP, "LISTED"))
            continue
        try:
            items.append(decode_as(type, bytes(item)))
        except msgspec.ValidationError as error:
            broken.append(malformed(item, str(error), "LISTED"))
    return Page(items, raw.metadata.resource_version, raw.metadata.continue_, tuple(broken))


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    type: EventType
    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """Everything up to this resourceVersion has been sent."""

    resource_version: str
    ends_initial_events: bool = False


class _Frame(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_decode_frame = msgspec.json.Decoder(_Frame).decode
_decode_status = msgspec.json.Decoder(Status).decode


_EVENT_OF: Any = WatchEvent


class EventDecoder(Generic[T]):
    """Decodes the lines of one watch."""

    def __init__(self, type: type[T]) -> None:
        self._decode_event = decoder_for(_EVENT_OF[type]).decode

    def decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Malformed:
        """Decode one line; raise ApiError for an ERROR event and msgspec.DecodeError for invalid JSON."""
        try:
            return self._decode(line)
        except RecursionError:
            return _malformed_event(json_depth.shallow(line), json_depth.TOO_DEEP)

    def _decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Malformed:
        if line.startswith(_CHANGES):
            try:
                change: WatchEvent[T] = self._decode_event(line)
                return change
            except msgspec.ValidationError as error:
                return _malformed_event(line, str(error))
        frame = _decode_frame(line)
        if frame.type == "BOOKMARK":
            metadata = decode_partial(frame.object).metadata
            annotations = metadata.annotations or {}
            return Bookmark(metadata.resource_version, annotations.get(INITIAL_EVENTS_END) == "true")
        if frame.type == "ERROR":
            raise error_from_status(_decode_status(frame.object))
        if frame.type not in _TYPES:
            raise msgspec.ValidationError("the type of the event is unknown")
        # Some proxies and aggregated API servers do not write `type` first.
        return self._decode(b'{"type":"%s","object":%s}' % (frame.type.encode(), bytes(frame.object)))


def _malformed_event(line: bytes, error: str) -> Malformed:
    frame = _decode_frame(line)
    return malformed(frame.object, error, frame.type)
