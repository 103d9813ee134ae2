"""Memory that is still allocated after a call, measured by tracemalloc."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable


def kept_bytes(work: Callable[[], object]) -> int:
    """Return the bytes that are still allocated after the call; its result is dropped."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
