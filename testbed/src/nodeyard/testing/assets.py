"""Where the real control plane's files are kept: outside the tree, one folder for each tool and version.

A file is put in place by a rename, so whatever is found here is whole; two builds at once do no harm.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def root() -> Path:
    """`$NODEYARD_ASSETS`, else `nodeyard` in the user's cache directory."""
    if given := os.environ.get("NODEYARD_ASSETS"):
        return Path(given).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "nodeyard"


def folder(tool: str, version: str) -> Path:
    return root() / f"{tool}-{version}"


@contextmanager
def scratch(near: Path) -> Iterator[Path]:
    """A new directory beside `near`, gone afterwards: what is made in it can be renamed to `near`."""
    near.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{near.name}-", dir=near.parent))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def publish(made: Path, place: Path) -> None:
    """Put a finished file or folder in its place; when somebody else was faster, theirs stays."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.rename(place)
    except OSError:
        if not place.exists():
            raise
