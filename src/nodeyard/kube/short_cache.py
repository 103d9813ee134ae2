"""Cache of functions of texts that somebody else writes: a kubelet, a leaf cluster.

`lru_cache` bounds the number of its entries. Here nobody chooses their size either: a long argument is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar

Argument = TypeVar("Argument", bound=Hashable)
Result = TypeVar("Result")

LONGEST: Final = 4096
"""Characters of the longest argument that is kept."""


def cache_short(
    maxsize: int, length: Callable[[Any], int] = len
) -> Callable[[Callable[[Argument], Result]], Callable[[Argument], Result]]:
    """Cache the results of a function of one argument, except for arguments longer than LONGEST."""

    def decorate(function: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def call(argument: Argument) -> Result:
            return cached(argument) if length(argument) <= LONGEST else function(argument)

        return call

    return decorate
