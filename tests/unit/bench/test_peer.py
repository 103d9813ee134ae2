"""Building the Go peer; a failure does not stop the benchmark."""

from __future__ import annotations

from pathlib import Path

from bench import peer
from bench.harness import Result

from nodeyard.testing.golang import GoError


class Toolchain:
    """A Go toolchain with the module in its cache."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.ran: list[tuple[str, ...]] = []

    def download(self, module: str, version: str, _folder: Path) -> dict[str, str]:
        assert (module, version) == ("github.com/cybozu-go/nyallocator", "v1.2.3")
        return {"Dir": str(self.cache)}

    def run(self, *arguments: str, folder: Path, mod: str) -> str:
        self.ran.append(arguments)
        assert (folder / "go.mod").read_text() == "module it"
        Path(arguments[2]).write_text("a binary")
        return ""


def test_the_peer_is_built_from_its_module(tmp_path):
    cache, out = tmp_path / "cache", tmp_path / "out"
    cache.mkdir()
    out.mkdir()
    (cache / "go.mod").write_text("module it")
    go = Toolchain(cache)

    built = peer.build(out, lambda _say: go)

    assert built.binary == out / "nyallocator"
    assert built.binary.read_text() == "a binary"
    assert "built from" in built.line()


def test_an_unavailable_module_is_reported_in_one_line(tmp_path):
    def nothing(_say):
        raise GoError("go mod download: 403 Forbidden\nThis module version is not available.")

    built = peer.build(tmp_path, nothing)

    assert built.binary is None
    assert built.line() == (
        "peer nyallocator v1.2.3: could not be built, so its figures are quoted: go mod download: 403 Forbidden "
        "This module version is not available."
    )


def test_quoted_numbers_are_below_the_table_and_miss_no_requirement():
    result = Result("x", {"ours": [{"rate": 1.0}]}, notes=("could not be built", peer.QUOTED))
    shown = result.markdown()
    assert shown.index("| rate |") < shown.index("could not be built") < shown.index("Quoted from another run")
    assert result.missed() == []
