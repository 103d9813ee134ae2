"""Versions that fit, and the error for those that do not."""

from __future__ import annotations

import re

import pytest

from nodeyard.testing import third_party_crds, tools, versions
from nodeyard.testing.versions import Version


@pytest.fixture(autouse=True)
def _the_pinned_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("K8S_VERSION", raising=False)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("etcd Version: 3.6.5\nGit SHA: Not provided", Version(3, 6, 5)),
        ("Kubernetes v1.36.4", Version(1, 36, 4)),
        ("Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0", Version(1, 32, 4)),
        ("go version go1.26.8 linux/amd64", Version(1, 26, 8)),
        ("go version go1.27 linux/amd64", Version(1, 27)),
        ("v4.3.1+gc0d08d0", Version(4, 3, 1)),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)", Version(0, 8, 0)),
        ("unknown flag: --version", None),
    ],
)
def test_a_version_is_parsed_from_a_programs_output(text: str, version: Version | None) -> None:
    assert versions.parse(text) == version


def test_a_suffix_is_kept_but_does_not_order() -> None:
    assert str(versions.parse("v1.36.4-gke.100")) == "v1.36.4-gke.100"
    assert versions.parse("v1.36.4-gke.100") == versions.parse("v1.36.4")


@pytest.mark.parametrize(
    ("binary", "found"),
    [
        ("etcd", "3.5.0"),
        ("etcd", "3.7.3"),
        ("kube-apiserver", "v1.36.0"),
        ("kube-controller-manager", "v1.36.9"),
        ("kubectl", "v1.35.0"),
        ("kubectl", "v1.37.1"),
        ("kubectl", "v1.36.4-gke.100"),
        ("helm", "v4.0.0"),
        ("kwok", "v0.8.1"),
        ("go", "go1.27.0"),
    ],
)
def test_a_version_that_fits_is_taken(binary: str, found: str) -> None:
    assert versions.misfit(binary, versions.pinned(found)) is None


@pytest.mark.parametrize(
    ("binary", "found", "reason"),
    [
        ("etcd", "3.4.23", "v3.4.23 is older than v3.5"),
        ("kube-apiserver", "v1.35.4", "v1.35.4 is not v1.36"),
        ("kube-scheduler", "v1.37.0", "v1.37.0 is not v1.36"),
        ("kubectl", "v1.34.4", "v1.34.4 is more than one minor release from v1.36"),
        ("kubectl", "v1.36.4-dispatcher", "v1.36.4-dispatcher only dispatches to other versions"),
        ("helm", "v3.19.0", "v3.19.0 is not v4"),
        ("cluster-api-core", "v1.13.0", "v1.13.0 is not v1.14"),
        ("go", "go1.25.4", "v1.25.4 is older than 1.26"),
    ],
)
def test_a_version_that_does_not_fit_is_refused_with_the_reason(binary: str, found: str, reason: str) -> None:
    assert versions.misfit(binary, versions.pinned(found)) == reason


def test_k8s_version_moves_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S_VERSION", "1.35.4")
    assert versions.kubernetes() == "v1.35.4"
    assert versions.misfit("kube-apiserver", Version(1, 35, 0)) is None
    assert versions.misfit("kubectl", Version(1, 37, 0)) is not None
    assert tools.of("kube-apiserver").folder.name == "kubernetes-v1.35.4"


@pytest.mark.parametrize("wanted", ["1.36", "latest", "v1.36.4 ; rm", "v1.36.x"])
def test_k8s_version_must_be_a_full_version(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setenv("K8S_VERSION", wanted)
    with pytest.raises(ValueError, match="not a full version such as v1.36.4"):
        versions.kubernetes()


@pytest.mark.parametrize("tool", tools.all_tools(), ids=lambda tool: tool.name)
def test_the_pins_here_and_in_the_go_modules_are_the_same(tool: tools.Tool) -> None:
    module = (tools.MODULES / tool.name / "go.mod").read_text()
    assert re.search(
        rf"^\s*(require )?{re.escape(tool.module)} {re.escape(tool.version)}( // indirect)?$", module, re.M
    )
    for package in tool.packages.values():
        assert re.search(rf"^\s*(tool )?{re.escape(package)}$", module, re.M)


@pytest.mark.parametrize("source", third_party_crds.SOURCES.values(), ids=lambda source: source.name)
def test_a_source_that_is_built_too_has_the_sum_of_its_go_module(source: third_party_crds.Source) -> None:
    assert source.sum.startswith("h1:")
    for tool in tools.all_tools():
        if (tool.module, tool.version) == (source.module, source.version):
            sums = (tools.MODULES / tool.name / "go.sum").read_text().splitlines()
            assert f"{source.module} {source.version} {source.sum}" in sums
