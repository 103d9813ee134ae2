"""CRDs of other projects, from their Go modules, and the stages of KWOK.

Each source is one pinned module, downloaded alone and checked against its sum. Its documents are kept as one JSON file,
which loads in milliseconds. The contract labels, which kustomize adds, are added on loading.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nodeyard.testing import assets, versions
from nodeyard.testing.golang import Go, GoError
from nodeyard.testing.rest import Rest
from nodeyard.testing.wait import until

CONTRACT = "cluster.x-k8s.io"
DEFINITION = "CustomResourceDefinition"


@dataclass(frozen=True)
class Source:
    """The documents of a module whose paths match the patterns."""

    name: str
    module: str
    version: str
    sum: str
    patterns: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return assets.root() / "foreign" / f"{self.name}-{self.version}.json"


_CLUSTER_API = ("sigs.k8s.io/cluster-api", versions.CLUSTER_API, "h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=")
_BOTH_CONTRACTS = {f"{CONTRACT}/v1beta1": "v1beta1", f"{CONTRACT}/v1beta2": "v1beta2"}

SOURCES = {
    source.name: source
    for source in (
        Source("cluster-api", *_CLUSTER_API, ("core/config/crd/bases/*.yaml", "core/config/webhook/manifests.yaml")),
        Source("kubeadm-bootstrap", *_CLUSTER_API, ("bootstrap/kubeadm/config/crd/bases/*.yaml",), _BOTH_CONTRACTS),
        Source(
            "kubeadm-control-plane", *_CLUSTER_API, ("controlplane/kubeadm/config/crd/bases/*.yaml",), _BOTH_CONTRACTS
        ),
        Source(
            "docker",
            "sigs.k8s.io/cluster-api/test",
            "v1.14.0",
            "h1:LYvJN8oM0vk6dv6ciceaCS0sAy62Lrf5IGsyNJ04g+U=",
            ("infrastructure/docker/config/crd/bases/*.yaml",),
            _BOTH_CONTRACTS,
        ),
        Source(
            "aws",
            "sigs.k8s.io/cluster-api-provider-aws/v2",
            "v2.13.0",
            "h1:yQz7GBrIkPLuEJ5MXNuZ/6eUssTJK8reUnZ6t5QIPnU=",
            ("config/crd/bases/*.yaml",),
            {f"{CONTRACT}/v1beta1": "v1beta1_v1beta2"},
        ),
        Source(
            "proxmox",
            "github.com/ionos-cloud/cluster-api-provider-proxmox",
            "v0.9.0",
            "h1:ZaCkjLHRPzBGn99GttQjeQCf7Z4HfhG04PyItO64CxE=",
            ("config/crd/bases/*.yaml",),
            {f"{CONTRACT}/v1beta1": "v1alpha2", f"{CONTRACT}/v1beta2": "v1alpha2"},
        ),
        Source(
            "flux-helm",
            "github.com/fluxcd/helm-controller",
            "v1.6.4",
            "h1:u/Ew7LehrwDQaE/NqWdaB3XnNDCxRGDcp1FZl7RKj4g=",
            ("config/crd/bases/*.yaml",),
        ),
        Source(
            "kwok-stages",
            "sigs.k8s.io/kwok",
            versions.KWOK,
            "h1:OTIOTwgROqPMovcTwxICx2eYQ4AwLpSx5EpjbDKF4SQ=",
            tuple(
                f"kustomize/stage/{part}/{file}"
                for part, file in (
                    ("node/fast", "node-*.yaml"),
                    ("node/heartbeat-with-lease", "node-*.yaml"),
                    ("pod/fast", "pod-*.yaml"),
                )
            ),
        ),
    )
}


def fetch(source: Source, go: Go) -> int:
    """Download and verify the module and store its documents; return their number."""
    source.file.parent.mkdir(parents=True, exist_ok=True)
    module = go.download(source.module, source.version, source.file.parent)
    if module["Sum"] != source.sum:
        raise GoError(f"{source.module}@{source.version} has the sum {module['Sum']}, pinned is {source.sum}")
    documents = list(_documents(Path(module["Dir"]), source.patterns))
    with assets.scratch(source.file) as made:
        (made / "documents").write_text(json.dumps(documents))
        assets.publish(made / "documents", source.file)
    return len(documents)


def load(name: str) -> list[dict[str, Any]]:
    """Return the documents of a source, CRDs with their contract labels."""
    source = SOURCES[name]
    documents: list[dict[str, Any]] = json.loads(source.file.read_bytes())
    return [_labelled(document, source.labels) for document in documents]


def definitions(*names: str) -> list[dict[str, Any]]:
    """Return the CRDs of these sources."""
    return [document for name in names for document in load(name) if document["kind"] == DEFINITION]


def install(rest: Rest, objects: Iterable[dict[str, Any]], timeout: float = 60.0) -> None:
    """Create or replace these CRDs; wait until they are established and in discovery."""
    definitions = [rest.replace_or_create(each) for each in objects]
    wanted = {each["metadata"]["name"] for each in definitions}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    until(lambda: wanted <= _established(rest.get(path)["items"]), "the definitions are established", timeout)
    until(lambda: _served(definitions) <= _discovered(rest, definitions), "the kinds are discovered", timeout)


def _served(definitions: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return group version and plural of all served versions."""
    return {
        (f"{each['spec']['group']}/{version['name']}", each["spec"]["names"]["plural"])
        for each in definitions
        for version in each["spec"]["versions"]
        if version["served"]
    }


def _discovered(rest: Rest, definitions: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    found = set()
    for group_version in {each for each, _ in _served(definitions)}:
        if rest.exists(path := f"/apis/{group_version}"):
            found |= {(group_version, each["name"]) for each in rest.get(path)["resources"]}
    return found


def _established(items: Iterable[dict[str, Any]]) -> set[str]:
    return {item["metadata"]["name"] for item in items if _is_established(item)}


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _documents(folder: Path, patterns: Iterable[str]) -> Iterable[dict[str, Any]]:
    for pattern in patterns:
        files = sorted(folder.glob(pattern))
        if not files:
            raise GoError(f"{folder.name} has no {pattern}")
        for file in files:
            for document in yaml.load_all(file.read_bytes(), yaml.CSafeLoader):
                if document:
                    yield document


def _labelled(document: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    if document["kind"] != DEFINITION or not labels:
        return document
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}
