"""The Go module of another Kubernetes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodeyard.testing import assets, go_modules, tools, versions
from nodeyard.testing.golang import Go, GoError

UPSTREAM = {
    "Replace": [
        {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
        {"Old": {"Path": "example.com/fork"}, "New": {"Path": "example.com/other", "Version": "v1.0.0"}},
    ]
}


class FakeGo(Go):
    """Fake Go toolchain that knows one release of Kubernetes and writes go.sum."""

    def run(self, *arguments: str, folder: Path, **_: object) -> str:
        if arguments[:2] == ("mod", "tidy"):
            (folder / "go.sum").write_text("sums")
        return json.dumps(UPSTREAM if arguments[:2] == ("mod", "edit") else {"GoMod": "/upstream/go.mod"})


GO = FakeGo(Path("/go"), "v1.26.8", "PATH")


@pytest.fixture(autouse=True)
def _assets_of_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEYARD_ASSETS", str(tmp_path))
    monkeypatch.delenv("K8S_VERSION", raising=False)


def test_the_pinned_versions_are_built_from_packaged_modules() -> None:
    assert go_modules.folder(tools.kubernetes(), GO) == tools.MODULES / "kubernetes"


def test_another_kubernetes_gets_a_module_with_its_staging_modules_as_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("K8S_VERSION", "v1.35.4")
    folder = go_modules.folder(tools.kubernetes(), GO)
    assert folder == assets.root() / "modules" / "kubernetes-v1.35.4"
    text = (folder / "go.mod").read_text()
    assert "require k8s.io/kubernetes v1.35.4\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.35.4\n" in text
    assert "example.com" not in text
    assert "tool k8s.io/kubernetes/cmd/kube-apiserver\n" in text
    assert (folder / "go.sum").exists()


def test_a_module_once_made_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S_VERSION", "v1.35.4")
    folder = go_modules.folder(tools.kubernetes(), GO)
    (folder / "go.mod").write_text("kept")
    assert (go_modules.folder(tools.kubernetes(), GO) / "go.mod").read_text() == "kept"


def test_a_tool_without_go_sum_is_a_broken_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_modules, "MODULES", tmp_path / "nowhere")
    with pytest.raises(GoError, match="reinstall nodeyard-testbed"):
        go_modules.folder(tools.etcd(), GO)


def test_a_binary_is_stamped_with_its_version() -> None:
    flags = tools.kubernetes().linker_flags
    assert f"-X k8s.io/component-base/version.gitVersion={versions.KUBERNETES}" in flags
    assert "-X k8s.io/component-base/version.gitMinor=36" in flags
