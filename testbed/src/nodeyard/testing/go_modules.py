"""Go module of a tool: packaged for the pinned versions, generated in the assets for another Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from nodeyard.testing import assets, versions
from nodeyard.testing.golang import Go, GoError
from nodeyard.testing.tools import MODULES, Tool


def folder(tool: Tool, go: Go, on_heartbeat: Callable[[float], None] | None = None) -> Path:
    """Return the folder with the tool's go.mod and go.sum."""
    if tool.name == "kubernetes" and tool.version != versions.KUBERNETES:
        return _kubernetes(tool, go, on_heartbeat)
    place = MODULES / tool.name
    if not (place / "go.sum").exists():
        raise GoError(f"{place} has no go.sum: reinstall nodeyard-testbed")
    return place


def _kubernetes(tool: Tool, go: Go, on_heartbeat: Callable[[float], None] | None) -> Path:
    """Generate the module for another release, with each staging module at its published version."""
    place = assets.root() / "modules" / f"{tool.name}-{tool.version}"
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    upstream = go.download(tool.module, tool.version, place.parent)["GoMod"]
    replaced = json.loads(go.run("mod", "edit", "-json", upstream, folder=place.parent, mod="mod"))["Replace"]
    staging = [each["Old"]["Path"] for each in replaced if each["New"]["Path"].startswith("./staging/")]
    with assets.scratch(place) as made:
        module = made / "module"
        module.mkdir()
        (module / "go.mod").write_text(module_file(tool, staging))
        go.run("mod", "tidy", folder=module, mod="mod", on_heartbeat=on_heartbeat)
        assets.publish(module, place)
    return place


def module_file(tool: Tool, staging: list[str]) -> str:
    """Return the go.mod before `go mod tidy`."""
    published = tool.version.replace("v1.", "v0.", 1)
    lines = [f"module nodeyard.dev/testbed/{tool.name}", "", "go 1.26.0", ""]
    lines += [f"tool {package}" for package in tool.packages.values()]
    lines += ["", f"require {tool.module} {tool.version}", "", "replace ("]
    lines += [f"\t{path} => {path} {published}" for path in staging]
    return "\n".join([*lines, ")", ""])
