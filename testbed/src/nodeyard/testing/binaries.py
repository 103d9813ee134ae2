"""Search for the binaries of the control plane.

In this order: `$KUBEBUILDER_ASSETS`, the built ones, the PATH. A binary whose version does not fit is skipped with a
message.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodeyard.testing import tools, versions

PROBE_SECONDS = 20.0
_VERSION_ARGUMENTS = {"kubectl": ("version", "--client"), "helm": ("version", "--short"), "go": ("version",)}


class MissingBinaryError(Exception):
    """No binary fits; the message names the skipped ones and the remedy."""


@dataclass(frozen=True)
class Found:
    path: Path
    version: str
    origin: str


@dataclass(frozen=True)
class Skipped:
    path: Path
    reason: str
    origin: str

    def __str__(self) -> str:
        return f"skipped {self.path} ({self.origin}): {self.reason}"


@dataclass(frozen=True)
class Search:
    """The result of a search."""

    binary: str
    found: Found | None
    skipped: tuple[Skipped, ...] = ()


def find(binary: str) -> Path:
    """Return the path of a binary whose version fits; raise MissingBinaryError."""
    result = search(binary)
    if result.found is not None:
        return result.found.path
    skipped = "".join(f"; {each}" for each in result.skipped)
    raise MissingBinaryError(
        f"{binary} not found: run `make controlplane` or `python -m nodeyard.testing.build`{skipped}"
    )


def search(binary: str) -> Search:
    skipped: list[Skipped] = []
    for path, origin in _candidates(binary):
        if origin == "built":
            return Search(binary, Found(path, tools.of(binary).version, origin), tuple(skipped))
        result = examine(binary, path, origin)
        if isinstance(result, Found):
            return Search(binary, result, tuple(skipped))
        skipped.append(result)
    return Search(binary, None, tuple(skipped))


def examine(binary: str, path: Path, origin: str) -> Found | Skipped:
    """Check the version that a binary reports."""
    text = version_text(path, _VERSION_ARGUMENTS.get(binary, ("--version",)))
    version = versions.parse(text)
    if version is None:
        return Skipped(path, "it reports no version", origin)
    reason = versions.misfit(binary, version)
    return Found(path, str(version), origin) if reason is None else Skipped(path, reason, origin)


@functools.cache
def version_text(path: Path, arguments: tuple[str, ...]) -> str:
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _candidates(binary: str) -> Iterator[tuple[Path, str]]:
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        yield from _executables(Path(given) / binary, "KUBEBUILDER_ASSETS")
    yield from _executables(tools.of(binary).folder / binary, "built")
    yield from on_path(binary)


def on_path(binary: str) -> Iterator[tuple[Path, str]]:
    """Return every executable of this name on the PATH, each real file once."""
    seen: set[Path] = set()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if not folder:
            continue
        for path, origin in _executables(Path(folder) / binary, "PATH"):
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield path, origin


def _executables(path: Path, origin: str) -> Iterator[tuple[Path, str]]:
    if shutil.which(path) is not None:
        yield path, origin
