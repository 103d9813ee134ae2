"""Fields that a JSON document gives more than once: decoding keeps the last, strict decoding names them.

Nearly every document has none, so that is found out first and cheaply: what a parser reads and writes back unchanged
has nothing twice.
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
    """An object as it is written."""


def duplicate_fields(raw: bytes, decoded: Json = UNSET) -> list[str]:
    """Their paths in the order of the document, each once and at most a hundred. `decoded` saves reading it again."""
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
