"""Files of the real control plane, outside the source tree: one folder per tool and version.

Files are put in place by a rename, so a file that exists is complete and concurrent builds do no harm.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def root() -> Path:
    """Return `$NODEYARD_ASSETS`, else `nodeyard` in the user's cache directory."""
    if given := os.environ.get("NODEYARD_ASSETS"):
        return Path(given).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "nodeyard"


def folder(tool: str, version: str) -> Path:
    return root() / f"{tool}-{version}"


@contextmanager
def scratch(near: Path) -> Iterator[Path]:
    """Create a temporary directory beside `near`, so that its contents can be renamed to `near`."""
    near.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{near.name}-", dir=near.parent))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def publish(made: Path, place: Path) -> None:
    """Rename a finished file or folder to its place; keep one that is already there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.rename(place)
    except OSError:
        if not place.exists():
            raise
