"""CRD validation of changes to a LatticeCluster, and kubectl output."""

from __future__ import annotations

import pytest
from tests.builders.pool_admission import CLUSTERS, SERVICES, refused, session
from tests.builders.pools import AWS, cluster_body, pool, service_body

from nodeyard.kube.json import Object


@pytest.fixture(scope="module")
def http(api):
    return session(api)


@pytest.fixture
def stored(http):
    """Store a cluster; return a function that tries to change it."""
    paths = []

    def store(body: Object):
        path = f"{CLUSTERS}/{body['metadata']['name']}"
        paths.append(path)
        assert http.post(CLUSTERS, body).status == 201
        return lambda spec: http.patch(path, {"spec": spec}, query={"dryRun": "All"})

    yield store
    for path in paths:
        http.delete(path)


def to_version(version: str) -> Object:
    return {"provider": {"kubernetes": {"version": version}}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1.32.0", "v1.32.0"),
        ("1.32.0", "1.32.9"),
        ("1.32.9", "1.33.0"),
        ("v1.9.9", "1.10.0"),
        ("1.33.0-rc.1", "1.33.0"),
        ("1.33.0-rc.1", "1.33.0-rc.2"),
        ("1.33.0+b-1", "1.33.0+b-2"),
    ],
)
def test_a_version_goes_up_by_at_most_one_minor_version(stored, before, after):
    assert stored(cluster_body("pa-upwards", version=before))(to_version(after)).status == 200


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("1.32.1", "1.32.0", "version cannot go down: it is 1.32.1 and would become 1.32.0"),
        ("v1.33.0", "1.32.9", "version cannot go down: it is v1.33.0 and would become 1.32.9"),
        ("1.33.0", "1.33.0-rc.1", "version cannot go down: it is 1.33.0 and would become 1.33.0-rc.1"),
        ("2.0.0", "1.99.0", "version cannot go down: it is 2.0.0 and would become 1.99.0"),
        ("1.32.0", "1.34.0", "version must go up one minor version at a time: 1.32.0 cannot become 1.34.0 at once"),
        ("1.32.0", "2.0.0", "version must go up one minor version at a time: 1.32.0 cannot become 2.0.0 at once"),
    ],
)
def test_a_version_is_neither_lowered_nor_raised_by_more_than_one_minor(stored, before, after, message):
    answer = stored(cluster_body("pa-versions", version=before))(to_version(after))

    refused(answer, "spec.provider.kubernetes.version", message)


def test_machines_do_not_move_between_providers(stored):
    change = stored(cluster_body("pa-providers"))

    refused(
        change({"provider": {"config": {"docker": None, **AWS}}}),
        "spec.provider.config",
        "the provider is immutable: create another LatticeCluster",
    )
    assert change({"provider": {"config": {"docker": {"image": "kindest/node:v1.32.0"}}}}).status == 200


def test_a_pool_is_renamed_and_the_form_changed_at_will(stored):
    change = stored(cluster_body("pa-forms", workers=3))

    assert change({"nodes": {"workers": None, "workerPools": {"default": pool(3)}}}).status == 200
    assert change({"nodes": {"workers": None, "workerPools": {"other": pool(3)}}}).status == 200


# what kubectl shows


def test_kubectl_shows_how_a_cluster_is(http, stored, kubectl, eventually):
    stored(cluster_body("pa-shown", workers=3))
    status = {
        "phase": "Ready",
        "version": "v1.32.0",
        "readyControlPlane": 1,
        "readyWorkers": 2,
        "workers": 3,
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "Scaling",
                "message": "2 of 3",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }
        ],
    }
    assert http.patch(f"{CLUSTERS}/pa-shown/status", {"status": status}).status == 200
    known = ("api-resources", "--api-group=lattice.dev")
    eventually(lambda: " lc " in kubectl(*known, check=False).stdout, "its short name is known")

    heading, row = kubectl("get", "lc", "pa-shown").stdout.splitlines()

    assert heading.split() == ["NAME", "PHASE", "VERSION", "CONTROLPLANE", "WORKERS", "WANTED", "READY", "HELD", "AGE"]
    assert row.split()[:7] == ["pa-shown", "Ready", "v1.32.0", "1", "2", "3", "False"]


def test_kubectl_shows_where_a_service_fits(http, kubectl, eventually):
    http.post(SERVICES, service_body("pa-web"))
    status = {"phase": "Placed", "placements": [{"cluster": "prod", "workerPool": "gpu", "replicas": 2}]}
    assert http.patch(f"{SERVICES}/pa-web/status", {"status": status}).status == 200
    known = ("api-resources", "--api-group=lattice.dev")
    eventually(lambda: " ls " in kubectl(*known, check=False).stdout, "its short name is known")

    heading, row = kubectl("get", "ls", "pa-web").stdout.splitlines()

    assert heading.split() == ["NAME", "PHASE", "CLUSTER", "POOL", "READY", "HELD", "AGE"]
    assert row.split()[:4] == ["pa-web", "Placed", "prod", "gpu"]
    http.delete(f"{SERVICES}/pa-web")


def test_kubectl_explains_what_the_policies_do_to_machines(http, kubectl, eventually):
    def explained():
        said = kubectl("explain", "lc.spec.poolDeletionPolicy", check=False).stdout
        return said.replace("\n", " ").replace("    ", "")

    eventually(lambda: "All policies delete the machines." in explained(), "the schema is published")
