"""`nodeyard version`: prints the version."""

from __future__ import annotations

import platform

from nodeyard.process.version import VERSION


def version() -> None:
    """Print the version."""
    print(f"nodeyard {VERSION} (Python {platform.python_version()})")
