"""What Python's cycle collector need not walk in a process that holds a fleet."""

from __future__ import annotations

import gc
from typing import Final

_THRESHOLDS: Final = (10_000, 20, 20)


def settle() -> None:
    """Called once what stays for long is in memory: it is not walked again and again.

    Nor is what each event and each plan brings: it is gone by the next, and in no cycle.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
