"""The charts of examples/03-affinity, from a fresh clone: each places its pods in the class."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml
from tests.builders.charts import (
    EXAMPLES,
    LIBRARY,
    POSTGRES,
    REDIS,
    ROOT,
    SELECTOR,
    ZONE,
    RenderError,
    chart_of,
    read,
    render,
    required,
    run,
    term,
)

from nodeyard.testing import clients

CHARTS = pytest.mark.parametrize("chart", [POSTGRES, REDIS], ids=lambda chart: chart.name)
DC1 = {"affinityClass": "dc1", "nodeSelector": {ZONE: "dc1"}}
EITHER = {"affinityClass": "near", "nodeAffinity": required(term(zone=["dc1"]), term(zone=["dc2"]))}
SSD = required(term(disk=["ssd"]))
PLATFORM = {"_cluster": None, "_namespace": {"defaultAffinityClass": "dc1", "allowedAffinityClasses": ["dc1", "dc2"]}}
"""Other values in the Secret of the tenant."""


@pytest.fixture(autouse=True)
def _no_traces_of_helm(tmp_path, monkeypatch):
    for place in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"HELM_{place}_HOME", str(tmp_path / place.lower()))


def pod_placements(rendered):
    """Return selector and affinity of the pods of each workload that the operator creates for the object."""
    spec = rendered["spec"]
    if rendered["kind"] == "Cluster":
        return {"instances": (spec["affinity"].get("nodeSelector"), spec["affinity"].get("nodeAffinity"))}
    return {
        part: (spec[part].get("nodeSelector"), spec[part].get("affinity", {}).get("nodeAffinity"))
        for part in ("redis", "sentinel")
    }


@pytest.mark.parametrize("chart", [LIBRARY, POSTGRES, REDIS], ids=lambda chart: chart.name)
def test_helm_finds_nothing_wrong(chart):
    assert "0 chart(s) failed" in run("lint", "--strict", chart)


@CHARTS
def test_the_library_is_linked_and_not_copied(chart):
    link = chart / "charts" / LIBRARY.name

    assert link.is_symlink()
    assert not link.readlink().is_absolute()
    assert link.resolve() == LIBRARY


@pytest.mark.parametrize(("chart", "workloads"), [(POSTGRES, {"instances"}), (REDIS, {"redis", "sentinel"})])
def test_every_pod_of_the_application_has_the_selector_of_its_class(chart, workloads):
    values = PLATFORM | {"affinityClass": "dc1", "replicas": 3, "_scheduling": DC1}

    placements = pod_placements(read(render(chart, values)))

    assert placements == dict.fromkeys(workloads, (DC1["nodeSelector"], None))


@CHARTS
def test_every_pod_of_the_application_has_the_affinity_of_its_class(chart):
    placements = pod_placements(read(render(chart, {"_scheduling": EITHER})))

    assert all(placement == (None, EITHER["nodeAffinity"]) for placement in placements.values())


def test_postgres_is_a_cluster_of_cloudnativepg():
    assert read(render(POSTGRES, {"replicas": 3, "storageClass": "local", "_scheduling": DC1})) == {
        "apiVersion": "postgresql.cnpg.io/v1",
        "kind": "Cluster",
        "metadata": {
            "name": "main-db",
            "labels": {
                "app.kubernetes.io/name": "postgres",
                "app.kubernetes.io/instance": "main-db",
                "app.kubernetes.io/managed-by": "Helm",
            },
        },
        "spec": {
            "instances": 3,
            "storage": {"size": "10Gi", "storageClass": "local"},
            "affinity": {
                "enablePodAntiAffinity": True,
                "topologyKey": "kubernetes.io/hostname",
                "nodeSelector": {ZONE: "dc1"},
            },
        },
    }


def test_redis_is_a_redisfailover():
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    rendered = read(render(REDIS, {"size": "2Gi", "_scheduling": DC1}, name="cache"))

    assert (rendered["apiVersion"], rendered["kind"]) == ("databases.spotahome.com/v1", "RedisFailover")
    assert rendered["metadata"]["name"] == "cache"
    assert rendered["spec"] == {
        "redis": {
            "replicas": 2,
            "storage": {"persistentVolumeClaim": {"metadata": {"name": "data"}, "spec": claim}},
            "nodeSelector": {ZONE: "dc1"},
        },
        "sentinel": {"replicas": 3, "nodeSelector": {ZONE: "dc1"}},
    }


@CHARTS
@pytest.mark.parametrize("values", [{}, PLATFORM, {"_scheduling": None}, {"_scheduling": {}}])
def test_without_a_class_charts_render_no_placement(chart, values):
    text = render(chart, values)

    assert "node" not in text.lower()
    assert not [line for line in text.splitlines() if not line.strip()]


@CHARTS
def test_the_users_selector_narrows_and_the_class_wins(chart):
    values = {"nodeSelector": {"disk": "ssd", ZONE: "dc2"}, "_scheduling": DC1}

    placements = pod_placements(read(render(chart, values)))

    assert all(selector == {"disk": "ssd", ZONE: "dc1"} for selector, _ in placements.values())


@pytest.mark.parametrize(
    ("chart", "own"),
    [(POSTGRES, {"nodeAffinity": SSD}), (REDIS, {"affinity": {"nodeAffinity": SSD}})],
    ids=["postgres", "redis"],
)
def test_the_users_affinity_is_in_force_beside_the_class(chart, own):
    wanted = required(term(disk=["ssd"], zone=["dc1"]), term(disk=["ssd"], zone=["dc2"]))

    placements = pod_placements(read(render(chart, own | {"_scheduling": EITHER})))

    assert all(affinity == wanted for _, affinity in placements.values())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"replica": 3}, "additional properties 'replica' not allowed"),
        ({"replicas": 0}, "at '/replicas': minimum: got 0, want 1"),
        ({"size": "ten"}, "at '/size': 'ten' does not match pattern"),
        ({"nodeSelector": "disk=ssd"}, "at '/nodeSelector': got string, want null or object"),
        ({"nodeSelector": {"gpu": True}}, 'the chart\'s own nodeSelector: the value of "gpu" must be a string'),
        ({"_scheduling": "dc1"}, '_scheduling must be a map, not the string "dc1"'),
    ],
)
@CHARTS
def test_wrong_values_are_refused_by_name(chart, values, message):
    with pytest.raises(RenderError, match=re.escape(message)):
        render(chart, values)


@CHARTS
def test_a_package_has_the_library_in_it_and_renders_alone(chart, tmp_path):
    run("package", chart, "--destination", tmp_path)

    package = tmp_path / f"{chart.name}-0.1.0.tgz"
    assert read(render(package, {"_scheduling": DC1})) == read(render(chart, {"_scheduling": DC1}))


def test_the_declared_dependency_leads_to_the_library_too(tmp_path):
    """Covers charts that are copied without their link."""
    shutil.copytree(LIBRARY, tmp_path / LIBRARY.relative_to(ROOT))
    copy = tmp_path / POSTGRES.relative_to(ROOT)
    shutil.copytree(POSTGRES, copy, ignore=shutil.ignore_patterns("charts"))

    run("dependency", "build", copy)

    assert read(render(copy, {"_scheduling": DC1})) == read(render(POSTGRES, {"_scheduling": DC1}))


def kustomized(folder, text):
    """Return the text after kustomize, as Flux processes it."""
    folder.mkdir()
    (folder / "rendered.yaml").write_text(text)
    (folder / "kustomization.yaml").write_text("resources: [rendered.yaml]\ncommonAnnotations: {through: kustomize}\n")
    return subprocess.run([clients.find("kubectl"), "kustomize", folder], capture_output=True, text=True, timeout=60)


@CHARTS
def test_rendered_charts_pass_through_kustomize(chart, tmp_path):
    text = render(chart, {"nodeSelector": {"disk": "ssd"}, "_scheduling": DC1 | EITHER})

    done = kustomized(tmp_path / "through", text)

    assert done.returncode == 0, done.stderr
    assert read(done.stdout)["spec"] == read(text)["spec"]


def test_a_chart_that_writes_the_key_itself_too_is_refused_as_by_flux(tmp_path):
    """The helper's `OWN` decides; these tests parse it as strictly."""
    twice = "kind: Twice\napiVersion: v1\nmetadata: {name: twice}\n" + SELECTOR.replace("first: 1", "nodeSelector: {}")
    text = render(chart_of(tmp_path / "probe", twice), {"_scheduling": DC1})

    done = kustomized(tmp_path / "through", text)

    assert 'mapping key "nodeSelector" already defined' in done.stderr
    with pytest.raises(yaml.YAMLError, match="stands twice"):
        read(text)


def test_every_example_chart_is_tested_here():
    assert sorted(EXAMPLES.iterdir()) == [POSTGRES, REDIS]
