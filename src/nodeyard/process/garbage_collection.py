"""Tuning of Python's cyclic garbage collector for a process that caches a fleet."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_THRESHOLDS: Final = (10_000, 20, 20)
_MANY: Final = 50_000
"""Objects that a collection visits in about 10 ms."""


def settle() -> None:
    """Freeze the current objects and raise the thresholds. Call once the caches are filled.

    Objects of events and plans are short-lived and free of cycles, so frequent collections would find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


@contextmanager
def paused() -> Iterator[None]:
    """Disable the collector while many long-lived objects are created, since it would find nothing to free."""
    is_on = gc.isenabled()
    if is_on:
        gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


@contextmanager
def bounded() -> Iterator[None]:
    """Bound the objects that one collection visits, for a process that keeps millions of them.

    Objects that survive a full collection, or that were made in large numbers since the last one of any generation,
    are frozen. A frozen object is freed when nothing refers to it, but not if it is part of a cycle.
    """

    def freeze(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            is_due = gc.get_count()[0] > _MANY
        else:
            is_due = info["generation"] == 2 and len(gc.get_objects(generation=2)) > _MANY
        if is_due:
            gc.freeze()

    gc.callbacks.append(freeze)
    try:
        yield
    finally:
        gc.callbacks.remove(freeze)
