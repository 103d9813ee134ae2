"""kubectl for everybody: built, found or fetched."""

from __future__ import annotations

from pathlib import Path

from nodeyard.testing import clients


def find() -> Path:
    """A kubectl within one minor release of the control plane: the built one, one on the PATH, or one out of PyPI."""
    return clients.find("kubectl")
