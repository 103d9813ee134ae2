"""Writes the kustomize base from the charts, for who does not use helm. A test fails if it has drifted.

python -m tools.kustomize
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from nodeyard.kube.json import Object
from nodeyard.kube.manifests import dump, dump_all
from nodeyard.kube.names import NAMESPACE
from nodeyard.testing import clients

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "kustomize"
CHARTS = {"crds.yaml": "nodeyard-crds", "operator.yaml": "nodeyard"}
SECONDS = 60.0


def files() -> Iterator[tuple[str, str]]:
    """Yield name and content of every file of the base."""
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield "namespace.yaml", dump(namespace)
    for name, chart in CHARTS.items():
        yield name, dump_all(rendered(chart))
    base: Object = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["namespace.yaml", *CHARTS],
    }
    yield "kustomization.yaml", dump(base)


def rendered(chart: str) -> list[Object]:
    """Return the objects of a chart with its default values, without what concerns helm alone."""
    command = [
        str(clients.find("helm")),
        "template",
        "nodeyard",
        str(ROOT / "charts" / chart),
        "--namespace",
        NAMESPACE,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    objects = [each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each]
    for each in objects:
        metadata = each["metadata"]
        for key in ("app.kubernetes.io/managed-by", "helm.sh/chart"):
            metadata.get("labels", {}).pop(key, None)
        metadata.get("annotations", {}).pop("helm.sh/resource-policy", None)
        if not metadata.get("annotations", True):
            del metadata["annotations"]
    return objects


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in files():
        (FOLDER / name).write_text(content)
