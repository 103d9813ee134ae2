"""Memory limit of the process: that of its container, else the memory of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""The limit files of control groups version 2 and 1 inside a container."""


def available(limits: Iterable[Path] = LIMITS) -> int:
    """Return the limit in bytes."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min([machine, *map(_limit, limits)]))


def _limit(file: Path) -> float:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        # No such file, or "max".
        return float("inf")
