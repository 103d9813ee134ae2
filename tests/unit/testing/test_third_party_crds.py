"""CRDs from modules of other projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodeyard.testing import third_party_crds
from nodeyard.testing.capi import converted_by
from nodeyard.testing.golang import Go, GoError
from nodeyard.testing.third_party_crds import Source

CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n"


class FakeGo(Go):
    """Fake Go toolchain with one downloaded module."""

    folder: Path

    def download(self, module: str, version: str, folder: Path) -> dict[str, str]:
        return {"Dir": str(FakeGo.folder), "Sum": "h1:right"}


GO = FakeGo(Path("/go"), "v1.26.8", "PATH")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """A source named `things` with one CRD and a webhook configuration."""
    FakeGo.folder = tmp_path / "module"
    bases = FakeGo.folder / "config" / "crd" / "bases"
    bases.mkdir(parents=True)
    (bases / "things.yaml").write_text(f"---\n{CRD}---\n")
    (FakeGo.folder / "config" / "hooks.yaml").write_text("kind: MutatingWebhookConfiguration\n")
    monkeypatch.setenv("NODEYARD_ASSETS", str(tmp_path / "assets"))
    patterns = ("config/crd/bases/*.yaml", "config/hooks.yaml")
    made = Source("things", "example.com/things", "v1.0.0", "h1:right", patterns, {"contract": "v1"})
    monkeypatch.setitem(third_party_crds.SOURCES, "things", made)
    return made


def test_the_documents_of_a_module_are_kept_and_loaded(source: Source) -> None:
    assert third_party_crds.fetch(source, GO) == 2
    assert [document["kind"] for document in third_party_crds.load("things")] == [
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
    ]


def test_only_crds_get_the_contract_labels(source: Source) -> None:
    third_party_crds.fetch(source, GO)
    (definition,) = third_party_crds.definitions("things")
    assert definition["metadata"] == {"name": "things.example.com", "labels": {"contract": "v1"}}
    assert third_party_crds.load("things")[1] == {"kind": "MutatingWebhookConfiguration"}
    assert "labels" not in json.loads(source.file.read_text())[0]["metadata"]


def test_a_module_with_another_sum_is_refused(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = Source(source.name, source.module, source.version, "h1:other", source.patterns)
    with pytest.raises(GoError, match="has the sum h1:right, pinned is h1:other"):
        third_party_crds.fetch(changed, GO)
    assert not source.file.exists()


def test_a_module_without_the_files_is_refused(source: Source) -> None:
    moved = Source(source.name, source.module, source.version, source.sum, ("elsewhere/*.yaml",))
    with pytest.raises(GoError, match="module has no elsewhere"):
        third_party_crds.fetch(moved, GO)


def test_a_definition_is_given_a_conversion_webhook_without_being_changed(source: Source) -> None:
    definition = {"spec": {"group": "example.com"}}
    converted = converted_by(definition, {"url": "https://127.0.0.1:1/convert", "caBundle": "Q0E="})
    assert converted["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"url": "https://127.0.0.1:1/convert", "caBundle": "Q0E="},
            "conversionReviewVersions": ["v1"],
        },
    }
    assert definition == {"spec": {"group": "example.com"}}
