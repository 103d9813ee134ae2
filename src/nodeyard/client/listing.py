"""Decoding of list pages. An object that does not fit its type becomes `Malformed`; the others are kept."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from nodeyard.client.decoding import Malformed, decode_as, decoder_for, malformed
from nodeyard.kube import json_depth

T = TypeVar("T")


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
        return _one_by_one(type, _apart(body))


def _apart(body: bytes) -> _List[msgspec.Raw]:
    decode = decoder_for(_LIST_OF[msgspec.Raw]).decode
    try:
        found: _List[msgspec.Raw] = decode(body)
    except RecursionError:
        found = decode(json_depth.shallow(body))
    return found


def _one_by_one(type: type[T], raw: _List[msgspec.Raw]) -> Page[T]:
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
