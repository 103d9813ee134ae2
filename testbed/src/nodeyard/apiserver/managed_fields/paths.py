"""Path elements: one step from a value to a part of it.

An element is the string that it is in fieldsV1: `f:name` is a field, `k:{"name":"c"}` the list item with these keys,
`v:"x"` the item of a set, `i:3` an index. Equal elements are equal strings, because keys are sorted and values have one
canonical form.
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
"""Not an element: marks, beside the children of a node, that the node itself is a member."""

_RANKS = {FIELD: 0, KEY: 1, VALUE: 2, INDEX: 3}


class PathElementError(ValueError):
    """A malformed path element."""


def field(name: str) -> str:
    return FIELD + name


def key(pairs: Iterable[tuple[str, Json]]) -> str:
    """Return the element of a list item by its keys."""
    return KEY + plain_json(dict(pairs))


def value(item: Json) -> str:
    """Return the element of an item of a set."""
    return VALUE + plain_json(item)


def canonical(text: str) -> str | None:
    """Return the canonical form of an element; None for an unknown type of element, which is ignored."""
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
    """Format a path as in conflicts and errors: `.spec.containers[name="c"].image`."""
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
    """Sort key of values of different types: numbers, strings, booleans, others."""

    type: int
    value: Any


@lru_cache(maxsize=8192)
def order(element: str) -> tuple[Any, ...]:
    """Return the sort key of elements in fieldsV1: fields by name, then keys, values and indexes."""
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
