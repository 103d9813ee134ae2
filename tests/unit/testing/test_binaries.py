"""The search for binaries, and which are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeyard.testing import binaries, clients, pypi_binaries, tools


def program(folder: Path, name: str, says: str) -> Path:
    """Write an executable that always prints this text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH and cache without binaries."""
    monkeypatch.setenv("NODEYARD_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("K8S_VERSION", raising=False)
    clients._find.cache_clear()
    return tmp_path


def test_a_binary_on_the_path_is_used_when_its_version_fits(place: Path) -> None:
    etcd = program(place / "bin", "etcd", "etcd Version: 3.5.30")
    assert binaries.search("etcd").found == binaries.Found(etcd, "v3.5.30", "PATH")


def test_a_binary_on_the_path_that_does_not_fit_is_named_and_skipped(place: Path) -> None:
    kubectl = program(place / "bin", "kubectl", "Client Version: v1.32.4-dispatcher")
    result = binaries.search("kubectl")
    assert result.found is None
    assert [str(each) for each in result.skipped] == [
        f"skipped {kubectl} (PATH): v1.32.4-dispatcher only dispatches to other versions"
    ]


def test_the_next_one_on_the_path_is_tried(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(place / "old", "etcd", "etcd Version: 3.4.23")
    fitting = program(place / "new", "etcd", "etcd Version: 3.6.0")
    monkeypatch.setenv("PATH", f"{place / 'old'}:{place / 'new'}")
    assert binaries.find("etcd") == fitting


def test_the_same_file_twice_on_the_path_is_looked_at_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(place / "bin", "etcd", "etcd Version: 3.4.23")
    (place / "alias").symlink_to(place / "bin")
    monkeypatch.setenv("PATH", f"{place / 'bin'}:{place / 'alias'}")
    assert len(binaries.search("etcd").skipped) == 1


def test_a_binary_that_reports_no_version_is_skipped(place: Path) -> None:
    program(place / "bin", "kube-apiserver", "hello")
    assert binaries.search("kube-apiserver").skipped[0].reason == "it reports no version"


def test_built_binaries_precede_the_path(place: Path) -> None:
    program(place / "bin", "etcd", "etcd Version: 3.5.30")
    built = program(tools.etcd().folder, "etcd", "no version")
    assert binaries.search("etcd").found == binaries.Found(built, tools.etcd().version, "built")


def test_kubebuilder_assets_precede_built_binaries(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tools.kubernetes().folder, "kube-apiserver", "Kubernetes v1.36.4")
    given = program(place / "given", "kube-apiserver", "Kubernetes v1.36.1")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(place / "given"))
    assert binaries.find("kube-apiserver") == given


def test_kubebuilder_assets_that_do_not_fit_are_named_and_skipped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = program(tools.kubernetes().folder, "kube-apiserver", "Kubernetes v1.36.4")
    given = program(place / "given", "kube-apiserver", "Kubernetes v1.31.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(place / "given"))
    result = binaries.search("kube-apiserver")
    assert result.found is not None
    assert result.found.path == built
    assert str(result.skipped[0]) == f"skipped {given} (KUBEBUILDER_ASSETS): v1.31.0 is not v1.36"


def test_a_missing_binary_names_skipped_ones_and_the_remedy(place: Path) -> None:
    program(place / "bin", "etcd", "etcd Version: 3.4.23")
    with pytest.raises(
        binaries.MissingBinaryError,
        match="run `make controlplane` or `python -m nodeyard.testing.build`; skipped .* is older than v3.5",
    ):
        binaries.find("etcd")


def test_kubectl_is_fetched_from_pypi_when_no_other_fits(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(place / "bin", "kubectl", "Client Version: v1.32.4-dispatcher")
    monkeypatch.setattr(pypi_binaries, "client", lambda binary: Path("/from/pypi") / binary)
    assert clients.find("kubectl") == Path("/from/pypi/kubectl")


def test_a_client_that_nobody_has_is_missing_with_every_reason(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(binary: str) -> Path:
        raise pypi_binaries.WheelError("pip could not get it: no network")

    program(place / "bin", "helm", "v3.19.0+g1")
    monkeypatch.setattr(pypi_binaries, "client", refuse)
    with pytest.raises(binaries.MissingBinaryError, match="no helm: pip could not get it: no network; skipped"):
        clients.find("helm")


def test_the_client_on_pypi_must_fit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S_VERSION", "v1.33.13")
    with pytest.raises(binaries.MissingBinaryError, match="v1.37.1 is more than one minor release from v1.33"):
        clients.find("kubectl")
