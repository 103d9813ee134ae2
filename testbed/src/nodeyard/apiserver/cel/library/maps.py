"""Collecting into a map: what `transformMap` and `transformMapEntry` expand to. Programs run it as a loop."""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.cel.declarations import Overload, function
from nodeyard.apiserver.cel.errors import no_such_overload
from nodeyard.apiserver.cel.macros import MAP_INSERT


def _within_loop(*_: Any) -> Any:
    raise no_such_overload()


OVERLOADS: list[Overload] = [
    function(MAP_INSERT, "map(K, V), K, V -> map(K, V)", _within_loop),
    function(MAP_INSERT, "map(K, V), map(K, V) -> map(K, V)", _within_loop),
]
