"""Duplicate keys of a JSON document: decoding keeps the last, strict decoding reports them.

Nearly every document has none, which is checked first: a document that is equal to its re-encoding has no duplicates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from nodeyard.kube.json import Json
from nodeyard.schema.model import UNSET

_MOST = 100

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _Pairs(list[tuple[str, Json]]):
    """An object with all its members."""


def duplicate_fields(raw: bytes, decoded: Json = UNSET) -> list[str]:
    """Return the paths in the order of the document, at most a hundred. Pass `decoded` to save a decode."""
    if _encode(_decode(raw) if decoded is UNSET else decoded) == raw or not _has_duplicates(raw):
        return []
    found = dict.fromkeys(_paths(json.loads(raw, object_pairs_hook=_Pairs), ""))
    return list(found)[:_MOST]


def _has_duplicates(raw: bytes) -> bool:
    lost = False

    def count(pairs: list[tuple[str, Json]]) -> Json:
        nonlocal lost
        obj = dict(pairs)
        lost = lost or len(obj) != len(pairs)
        return obj

    json.loads(raw, object_pairs_hook=count)
    return lost


def _paths(value: Json, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for name, item in value:
            below = f"{path}.{name}" if path else name
            if name in seen:
                yield below
            seen.add(name)
            yield from _paths(item, below)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _paths(item, f"{path}[{position}]")
