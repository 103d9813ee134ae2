"""The Go peer, nyallocator v1.2.3: built from its module, or quoted from another run if it cannot be built."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodeyard.testing import golang

NAME = "nyallocator"
MODULE = "github.com/cybozu-go/nyallocator"
VERSION = "v1.2.3"
TIMEOUT_SECONDS = 300.0
"""The nodes that it has claimed by then count."""

QUOTED = """\
Quoted from another run, not measured here: nyallocator v1.2.3 on a kube-apiserver with 2 cores, 1,000 spares and 10 \
templates.

| | nyallocator v1.2.3 |
|---|--:|
| nodes claimed after 300 s, of 1,000 | 410 |
| CPU seconds | 325 |
| memory, MB | 112 |
| reaction to two new spares, s | 51 and more than 120 |
| the same 2,000 patches sent raw, s | 14.1 |
"""


_ADDRESS = re.compile(r"reading \S+: ")


@dataclass(frozen=True)
class Peer:
    binary: Path | None
    why_not: str = ""

    def line(self) -> str:
        if self.binary is not None:
            return f"peer {NAME} {VERSION}: built from {MODULE}"
        return f"peer {NAME} {VERSION}: could not be built, so its figures are quoted: {self.why_not}"


def build(folder: Path, find: Callable[[Callable[[str], None]], golang.Go] = golang.find) -> Peer:
    """Build the peer. Without network, module or toolchain the result has the reason instead of a binary."""
    try:
        go = find(lambda _said: None)
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(go.download(MODULE, VERSION, Path(scratch))["Dir"])
            tree = Path(scratch) / "tree"
            # Go's cache is read-only, and a build may have to write go.sum.
            shutil.copytree(source, tree, copy_function=shutil.copyfile)
            binary = folder / NAME
            go.run("build", "-o", str(binary), "./cmd", folder=tree, mod="mod")
    except (golang.GoError, OSError) as error:
        return Peer(None, " ".join(_ADDRESS.sub("", str(error)).split()))
    return Peer(binary)
