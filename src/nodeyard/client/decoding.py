"""Decoding of objects, and the metadata of objects that do not fit their type."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from nodeyard.kube import json_depth

T = TypeVar("T")


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
        decoder = _decoders[type] = msgspec.json.Decoder(type)
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
