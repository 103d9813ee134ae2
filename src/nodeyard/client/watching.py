"""Decoding of watch events into the caller's type.

An object that does not fit the type becomes `Malformed`: it affects its own key, never the stream.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

import msgspec

from nodeyard.client.decoding import Malformed, decode_partial, decoder_for, malformed
from nodeyard.client.errors import Status, error_from_status
from nodeyard.kube import json_depth

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

# The server writes `type` first, so these lines are decoded in one step.
_CHANGES = (b'{"type":"ADDED"', b'{"type":"MODIFIED"', b'{"type":"DELETED"')


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


_CHANGE_OF: Any = WatchEvent


class EventDecoder(Generic[T]):
    """Decodes the lines of one watch."""

    def __init__(self, type: type[T]) -> None:
        self._decode_change = decoder_for(_CHANGE_OF[type]).decode

    def decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Malformed:
        """Decode one line; raise ApiError for an ERROR event and msgspec.DecodeError for invalid JSON."""
        try:
            return self._decode(line)
        except RecursionError:
            return _malformed(json_depth.shallow(line), json_depth.TOO_DEEP)

    def _decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Malformed:
        if line.startswith(_CHANGES):
            try:
                change: WatchEvent[T] = self._decode_change(line)
                return change
            except msgspec.ValidationError as error:
                return _malformed(line, str(error))
        frame = _decode_frame(line)
        if frame.type == "BOOKMARK":
            metadata = decode_partial(frame.object).metadata
            annotations = metadata.annotations or {}
            return Bookmark(metadata.resource_version, annotations.get(INITIAL_EVENTS_END) == "true")
        if frame.type == "ERROR":
            raise error_from_status(_decode_status(frame.object))
        # Some proxies and aggregated API servers do not write `type` first.
        return self._decode(b'{"type":"%s","object":%s}' % (frame.type.encode(), bytes(frame.object)))


def _malformed(line: bytes, error: str) -> Malformed:
    frame = _decode_frame(line)
    return malformed(frame.object, error, frame.type)
