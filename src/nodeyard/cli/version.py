"""`nodeyard version`."""

from __future__ import annotations

import platform

from nodeyard import __version__


def version() -> None:
    """Print the version."""
    print(f"nodeyard {__version__} (Python {platform.python_version()})")
