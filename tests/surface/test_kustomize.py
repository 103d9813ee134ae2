"""The kustomize base: what the charts install by default."""

import subprocess

from tests.builders.chart_install import DEFINITIONS, installed
from tests.builders.charts import read_all
from tools.kustomize import FOLDER, files

from nodeyard.kube.names import NAMESPACE
from nodeyard.testing import clients

OF_HELM = ("app.kubernetes.io/managed-by", "helm.sh/chart", "helm.sh/resource-policy")


def test_it_has_not_drifted_from_the_charts():
    wanted = dict(files())
    there = {path.name: path.read_text() for path in FOLDER.iterdir()}

    assert there == wanted, "run python -m tools.kustomize"


def test_kubectl_builds_the_objects_that_helm_installs():
    done = subprocess.run([clients.find("kubectl"), "kustomize", FOLDER], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr

    built = named(read_all(done.stdout))
    namespace = built.pop(("Namespace", None, NAMESPACE))
    assert namespace["metadata"] == {"name": NAMESPACE}
    assert built == named(without_helm(each) for each in [*installed(), *installed(DEFINITIONS)])


def named(objects):
    return {(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]): each for each in objects}


def without_helm(obj):
    metadata = dict(obj["metadata"])
    for field in ("labels", "annotations"):
        kept = {key: value for key, value in metadata.pop(field, {}).items() if key not in OF_HELM}
        if kept:
            metadata[field] = kept
    return {**obj, "metadata": metadata}
