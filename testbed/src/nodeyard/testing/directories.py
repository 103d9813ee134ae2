"""Temporary directories of control planes, removed even if their owner was killed.

The owner holds a file lock, which the kernel releases when the process ends. Each new control plane first removes the
directories whose lock is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import IO

PREFIX = "nodeyard-controlplane-"
LOCK = "owner"


class Directory:
    """A locked directory. A given one is kept; a temporary one is removed on close."""

    def __init__(self, given: Path | None = None) -> None:
        self._is_temporary = given is None
        if given is None:
            sweep()
            given = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.path = given.absolute()
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock: IO[bytes] | None = _lock_new(self.path)

    def close(self) -> None:
        if self._lock is None:
            return
        if self._is_temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
        self._lock = None


def sweep(parent: Path | None = None) -> None:
    """Remove temporary directories whose owner has ended."""
    for path in (parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (path / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)


def _lock_new(folder: Path) -> IO[bytes]:
    """Lock the file before renaming it to its name, so that no `sweep` finds it unlocked."""
    place = folder / LOCK
    is_new = not place.exists()
    opened = folder / f"{LOCK}.new" if is_new else place
    lock = opened.open("ab")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if is_new:
        opened.rename(place)
    return lock
