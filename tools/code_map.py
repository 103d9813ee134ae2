"""Prints how the code reads: the path of one event, and figures of the tree. Orientation, not limits.

python tools/code_map.py            the event: a spare Node appears and is claimed; then the tree
python tools/code_map.py --event    the event alone, every function by file in the order of the first call
"""

from __future__ import annotations

import ast
import asyncio
import statistics
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from nodeyard.apiserver.server import Server
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.client.resources import NODES, untyped
from nodeyard.process import logs
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.crds import install
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.settings import Settings
from nodeyard.sim.embedded import connect
from nodeyard.sim.nodes import spare_node

ROOT = Path(__file__).parents[1]
OPERATOR, TESTBED = ROOT / "src" / "nodeyard", ROOT / "testbed" / "src" / "nodeyard"
TEMPLATES = untyped("nyallocator.cybozu.io", "v1", "nodetemplates", "NodeTemplate", namespaced=False)
SMALL_FILE, SMALL_FUNCTION, PATIENCE_SECONDS = 40, 5, 20.0
_OWN = ("trace_event", "_until")


class Recorder:
    """Notes every function of the operator that is called while it is on, in all threads. What the embedded server and
    this script call does not count, though they share modules with the operator."""

    def __init__(self) -> None:
        self.is_on = False
        self.visited: dict[str, dict[str, None]] = defaultdict(dict)

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(str(OPERATOR)):
            name = frame.f_code.co_qualname
            if "<" not in name.replace("<locals>", "") and not _is_foreign(frame):
                self.visited[str(Path(frame.f_code.co_filename).relative_to(OPERATOR))][name] = None


def _is_foreign(frame: FrameType | None) -> bool:
    """Tell whether the embedded server or this script has called the function."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(str(TESTBED)) or (code.co_filename == __file__ and code.co_name in _OWN):
            return True
        frame = frame.f_back
    return False


async def trace_event() -> Recorder:
    """Run spares on the embedded server, and record from a Node's creation until its NodeTemplate is Ready."""
    recorder, clock, server = Recorder(), SystemClock(), Server(seed=1)
    await server.start(())
    client = connect(server)
    await install(client, [SPARES], clock)
    selector = {"matchLabels": {"kubernetes.io/hostname": "n1"}}
    spec = {"nodes": 1, "selector": selector, "template": {"metadata": {"labels": {"team": "web"}}}}
    template = {"apiVersion": "nyallocator.cybozu.io/v1", "kind": "NodeTemplate", "metadata": {"name": "web"}}
    await client.create(TEMPLATES, {**template, "spec": spec})
    threading.setprofile(recorder)
    async with Manager(connect(server), [SPARES], Settings(identity="map", leader_elect=False)).running():
        await _until(client, "False")
        sys.setprofile(recorder)
        recorder.is_on = True
        await client.create(NODES, spare_node("n1", clock.now()))
        await _until(client, "True")
        recorder.is_on = False
        sys.setprofile(None)
    threading.setprofile(None)
    await server.stop()
    return recorder


async def _until(client: Any, status: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = await client.get(TEMPLATES, "web")
            conditions = found.get("status", {}).get("conditions", ())
            if any(each["type"] == "Sufficient" and each["status"] == status for each in conditions):
                return
            await asyncio.sleep(0.05)


def modules(root: Path) -> dict[str, ast.Module]:
    return {
        ".".join(("nodeyard", *path.relative_to(root).with_suffix("").parts)): ast.parse(path.read_text())
        for path in sorted(root.rglob("*.py"))
    }


def imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def print_tree(name: str, root: Path) -> None:
    trees = modules(root)
    lengths = [len(path.read_text().splitlines()) for path in root.rglob("*.py")]
    bodies = [
        node.end_lineno - node.lineno + 1 for tree in trees.values() for node in functions(tree) if node.end_lineno
    ]
    bodies.sort()
    importers: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for imported in imports(tree) & trees.keys():
            importers[imported].append(module)
    small = {
        module: users[0]
        for module, users in sorted(importers.items())
        if len(users) == 1 and len(ast.unparse(trees[module]).splitlines()) < SMALL_FILE
    }
    print(f"\n{name}: {len(lengths)} files, {sum(lengths)} lines")
    print(f"lines of a file: median {statistics.median(lengths):.0f}")
    print(f"lines of a function: median {statistics.median(bodies):.0f}, 95 % {bodies[len(bodies) * 95 // 100]}")
    print(f"small modules with one importer: {len(small)}")
    for module, user in small.items():
        print(f"  {module} <- {user}")
    print("functions that stand more than once:")
    for shape, places in alike(trees).items():
        if len(places) > 1 and shape.count("\n") >= SMALL_FUNCTION:
            print(f"  {', '.join(places)}")


def alike(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Functions by their code without names of variables and docstrings."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for node in functions(tree):
            copied = ast.parse(ast.unparse(node)).body[0]
            for each in ast.walk(copied):
                if isinstance(each, ast.Name):
                    each.id = "_"
                elif isinstance(each, ast.arg):
                    each.arg = "_"
            assert isinstance(copied, ast.FunctionDef | ast.AsyncFunctionDef)
            if ast.get_docstring(copied):
                copied.body = copied.body[1:] or [ast.Pass()]
            copied.name = "_"
            found[ast.unparse(copied)].append(f"{module}.{node.name}")
    return found


def main() -> None:
    logs.configure("error")
    visited = asyncio.run(trace_event()).visited
    print("A spare Node appears and is claimed: functions of the operator by file, in the order of the first call\n")
    for path, names in visited.items():
        print(f"{path}: {', '.join(names)}")
    print(f"\n{len(visited)} files, {sum(map(len, visited.values()))} functions")
    if "--event" not in sys.argv:
        print_tree("nodeyard", OPERATOR)
        print_tree("nodeyard-testbed", TESTBED)


if __name__ == "__main__":
    main()
