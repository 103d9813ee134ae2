"""promtool of Debian's package, for alerts and for expressions of dashboards."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

from tools import debian

from nodeyard.testing import assets

SECONDS = 60.0


@functools.cache
def find() -> Path:
    """Return the path of promtool; fetch it if it is missing."""
    package = debian.locked()["prometheus"]
    place = assets.folder("promtool", package.sha256[:16])
    if not place.exists():
        with debian.open_part(debian.fetch(package), "data") as data, assets.scratch(place) as made:
            content = data.extractfile("./usr/bin/promtool")
            assert content is not None
            (made / "promtool").write_bytes(content.read())
            (made / "promtool").chmod(0o755)
            assets.publish(made, place)
    return place / "promtool"


def run(*arguments: str | Path) -> tuple[int, str]:
    """Return the exit code and everything that it prints."""
    command = [find(), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    return done.returncode, done.stdout


def write(path: Path, value: Any) -> Path:
    """Write a file for promtool; JSON is YAML."""
    path.write_text(json.dumps(value))
    return path
