"""Finding the binaries of the control plane.

In this order: `$KUBEBUILDER_ASSETS`, because somebody asked for it; what `make controlplane` built; the PATH. A binary
whose version does not fit is named and passed over.
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
    """Nothing that fits was found; the message says what was passed over and what to do."""


@dataclass(frozen=True)
class Found:
    path: Path
    version: str
    origin: str


@dataclass(frozen=True)
class PassedOver:
    path: Path
    reason: str
    origin: str

    def __str__(self) -> str:
        return f"passed over {self.path} ({self.origin}): {self.reason}"


@dataclass(frozen=True)
class Search:
    """What looking for a binary came to."""

    binary: str
    found: Found | None
    passed_over: tuple[PassedOver, ...] = ()


def find(binary: str) -> Path:
    """The path of a binary whose version fits, or MissingBinaryError."""
    result = search(binary)
    if result.found is not None:
        return result.found.path
    passed_over = "".join(f"; {each}" for each in result.passed_over)
    raise MissingBinaryError(f"{binary} is not here: run `make controlplane`{passed_over}")


def search(binary: str) -> Search:
    passed_over: list[PassedOver] = []
    for path, origin in _candidates(binary):
        if origin == "built":
            return Search(binary, Found(path, tools.of(binary).version, origin), tuple(passed_over))
        verdict = examine(binary, path, origin)
        if isinstance(verdict, Found):
            return Search(binary, verdict, tuple(passed_over))
        passed_over.append(verdict)
    return Search(binary, None, tuple(passed_over))


def examine(binary: str, path: Path, origin: str) -> Found | PassedOver:
    """Whether the version that this file says it has will do."""
    text = version_text(path, _VERSION_ARGUMENTS.get(binary, ("--version",)))
    version = versions.parse(text)
    if version is None:
        return PassedOver(path, "it does not tell its version", origin)
    reason = versions.misfit(binary, version)
    return Found(path, str(version), origin) if reason is None else PassedOver(path, reason, origin)


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
    """Every executable of this name on the PATH, each real file once."""
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
