"""Path elements: how a field set names one step from a value to a part of it.

An element is kept in the form it has in fieldsV1, a string: `f:name` a field, `k:{"name":"c"}` the list item with these
keys, `v:"x"` the item of a set, `i:3` a position. Equal elements are equal strings, because keys are sorted and values
are written in one way only.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from nodeyard.kube.goformat import plain, plain_json, quote
from nodeyard.kube.json import Json

_decode = msgspec.json.Decoder().decode

FIELD, KEY, VALUE, INDEX = "f:", "k:", "v:", "i:"
SELF = "."
"""Not an element: marks, beside the children of a node, that the node itself is in the set."""

_RANKS = {FIELD: 0, KEY: 1, VALUE: 2, INDEX: 3}


class PathElementError(ValueError):
    """A string that is no path element."""


def field(name: str) -> str:
    return FIELD + name


def key(pairs: Iterable[tuple[str, Json]]) -> str:
    """The element of a list item by its keys."""
    return KEY + plain_json(dict(pairs))


def value(item: Json) -> str:
    """The element of a set's item."""
    return VALUE + plain_json(item)


def canonical(text: str) -> str | None:
    """The one way to write this element; None for a kind of element that is not known and shall be ignored."""
    prefix, content = text[:2], text[2:]
    if len(text) < 2:
        raise PathElementError("key must be 2 characters long:")
    if text[1] != ":":
        raise PathElementError(f"missing colon: {text}")
    if prefix == FIELD:
        return text
    if prefix == INDEX:
        return INDEX + str(_position(content))
    if prefix not in _RANKS:
        return None
    try:
        decoded = _decode(content)
    except msgspec.DecodeError as error:
        raise PathElementError(str(error)) from error
    if prefix == KEY and not isinstance(decoded, dict):
        raise PathElementError(f"expected an object: {text}")
    return prefix + plain_json(decoded)


def _position(content: str) -> int:
    try:
        return int(content)
    except ValueError as error:
        raise PathElementError(f'strconv.Atoi: parsing "{content}": invalid syntax') from error


def render(path: Iterable[str]) -> str:
    """A path as conflicts and errors print it: `.spec.containers[name="c"].image`."""
    return "".join(map(_render, path))


def _render(element: str) -> str:
    prefix, content = element[:2], element[2:]
    if prefix == FIELD:
        return f".{content}"
    if prefix == INDEX:
        return f"[{content}]"
    decoded = _decode(content)
    if prefix == VALUE:
        return f"[={_text(decoded)}]"
    return f"[{','.join(f'{name}={_text(decoded[name])}' for name in sorted(decoded))}]"


def _text(item: Json) -> str:
    if item is None:
        return "null"
    return quote(item) if isinstance(item, str) else plain(item)


# order


class _Rank(NamedTuple):
    """Sorts values of different types: numbers, strings, booleans, everything else."""

    type: int
    value: Any


@lru_cache(maxsize=8192)
def order(element: str) -> tuple[Any, ...]:
    """The sort key by which elements stand in fieldsV1: fields by name, then keys, values and positions."""
    prefix, content = element[:2], element[2:]
    rank = _RANKS.get(prefix, -1)
    if prefix == KEY:
        return (rank, tuple((name, _rank(item)) for name, item in sorted(_decode(content).items())))
    if prefix == VALUE:
        return (rank, _rank(_decode(content)))
    if prefix == INDEX:
        return (rank, int(content))
    return (rank, content)


def _rank(item: Json) -> _Rank:
    if isinstance(item, bool):
        return _Rank(2, item)
    if isinstance(item, int | float):
        return _Rank(0, item)
    if isinstance(item, str):
        return _Rank(1, item)
    return _Rank(3, plain_json(item))
