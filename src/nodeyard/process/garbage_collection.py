"""Tuning of Python's cyclic garbage collector for a process that caches a fleet."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_THRESHOLDS: Final = (10_000, 20, 20)


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
