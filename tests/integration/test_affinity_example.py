"""examples/03-affinity, applied by its README with a simulated Flux: objects, and outputs of the commands."""

import subprocess
from pathlib import Path

import pytest
import yaml
from tests.builders.affinity_env import run_affinity_env
from tests.builders.pools_env import PROGRAM
from tests.builders.release_world import ReleaseWorld

from nodeyard.capabilities.affinity import names

EXAMPLE = Path(__file__).parents[2] / "examples" / "03-affinity"
FILES = ("classes", "definitions", "tenants", "applications")
ACME = "tenant-acme"
ZONE = "topology.kubernetes.io/zone"
PATIENCE = 60.0


@pytest.fixture(scope="module")
def affinity(api, affinity_crds):
    """A running operator, a simulated Flux, and the applied example."""
    with ReleaseWorld(api) as world, run_affinity_env(api) as affinity:
        world.add_nodes(6, zones=("dc1", "dc2"), prefix="affinity-example")
        affinity.world = world
        affinity.start()
        for name in FILES:
            apply(affinity, EXAMPLE / f"{name}.yaml")
        yield affinity


def apply(affinity, file):
    """Apply a file's objects, each again until it is accepted: some need kinds or namespaces that others create."""
    for obj in yaml.safe_load_all(file.read_text()):
        if obj["kind"] == names.DEFINITION_KIND:
            given = obj["spec"]["application"]
            affinity.plurals[given["kind"]] = (names.APPS_API_VERSION, given["plural"], True)
        affinity.wait_until(lambda obj=obj: affinity.post(obj).status in (201, 409), f"{obj['kind']} is applied")


@pytest.fixture
def run(api):
    def run(*arguments, code=0):
        command = [*PROGRAM, *arguments, "--kubeconfig", str(api.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        # Joined to one line, because wrapping is not tested here.
        return " ".join(done.stdout.split())

    return run


def rows(kubectl, *arguments):
    return [line.split()[:-1] for line in kubectl("get", *arguments).stdout.splitlines()[1:]]


def test_the_examples_applications_run_where_their_classes_say(affinity, kubectl, run):
    affinity.wait_for_condition("Postgres", "main-db", "Ready", "InstallSucceeded", ACME)
    affinity.wait_for_condition("Redis", "cache", "Ready", "InstallSucceeded", ACME)

    pods = affinity.http.get(f"/api/v1/namespaces/{ACME}/pods").json["items"]
    assert sorted(each["metadata"]["name"] for each in pods) == [
        "postgres-main-db-0", "postgres-main-db-1", "postgres-main-db-2", "redis-cache-0", "redis-cache-1"
    ]  # fmt: skip
    for pod in pods:
        assert pod["spec"]["nodeSelector"] == {ZONE: "dc1"}
        assert pod["metadata"]["labels"][names.AFFINITY_CLASS] == "dc1"
        node = affinity.get("Node", pod["spec"]["nodeName"])
        assert node["metadata"]["labels"][ZONE] == "dc1"
    assert rows(kubectl, "postgres", "-n", ACME) == [["main-db", "True", "1.0.0", "dc1"]]
    for what, row in (
        (("afc", "dc1"), ["dc1", "Deny", "3", "4", "True"]),
        (("tenants", "-n", ACME), ["web", "tenant-acme-web", "dc1", '["dc1"]', "True"]),
    ):
        affinity.wait_until(
            lambda what=what, row=row: rows(kubectl, *what) == [row], f"{what[0]} are shown as they are"
        )
    assert "affinity application/Postgres/tenant-acme/main-db: nothing to do" in run("plan", "--full")
    assert affinity.world.errors == []


def test_why_explains_the_whole_chain_of_a_pod(affinity, run):
    affinity.wait_for_condition("Postgres", "main-db", "Ready", "InstallSucceeded", ACME)

    said = run("why", "pod/postgres-main-db-0", "-n", ACME)

    for part in (
        "InsideClass: pod tenant-acme/postgres-main-db-0 stays inside AffinityClass dc1",
        "Tenant tenant-root/acme: TenantPolicy: allows dc1, dc2; default dc1",
        "StatefulSet tenant-acme/postgres-main-db: OwnedBy: owner of Pod tenant-acme/postgres-main-db-0",
        "HelmRelease tenant-acme/postgres-main-db: ReleaseOf: release of Postgres main-db, class dc1",
        "AffinityClass dc1: ClassRequires: requires topology.kubernetes.io/zone=dc1; enforcement Deny",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        (
            "application/Postgres/tenant-acme/main-db",
            'Postgres tenant-acme/main-db sets spec.affinityClass to AffinityClass "dc1"',
        ),
        ("application/Redis/tenant-acme/cache", 'keeps AffinityClass "dc1", the default when it was first released'),
        ("affinityclass/gpu", "No node matches the class: its pods stay pending"),
        ("appdef/redis", "Redis is served in apps.cozystack.io/v1alpha1"),
        ("namespace/tenant-acme-web", "Tenant tenant-root/acme: TenantPolicy: allows dc1, dc2; default dc1"),
    ],
)
def test_why_explains_all_other_objects(affinity, run, subject, told):
    affinity.wait_for_condition("Redis", "cache", "Ready", "InstallSucceeded", ACME)

    assert told in run("why", subject)


def test_plan_shows_the_effect_of_a_class_change(affinity, run, tmp_path):
    affinity.wait_for_condition("Postgres", "main-db", "Ready", "InstallSucceeded", ACME)
    changed = (EXAMPLE / "applications.yaml").read_text().replace("affinityClass: dc1", "affinityClass: dc2")
    (tmp_path / "changed.yaml").write_text(changed)

    said = run("plan", "-f", str(tmp_path / "changed.yaml"), code=2)

    assert "HelmRelease tenant-acme/postgres-main-db" in said
    assert "ClassChanged" in said
    assert affinity.release("Postgres", ACME, "main-db")["metadata"]["labels"][names.AFFINITY_CLASS] == "dc1"


def test_a_change_of_class_moves_the_pods_one_after_the_other(affinity):
    affinity.application_release("Postgres", ACME, "mover", affinityClass="dc1", replicas=2)
    affinity.wait_for_condition("Postgres", "mover", "Ready", "InstallSucceeded", ACME)
    assert affinity.patch("Postgres", "mover", {"spec": {"affinityClass": "dc2"}}, ACME).status == 200

    affinity.wait_for_condition("Postgres", "mover", "Ready", "UpgradeSucceeded", ACME)

    query = f"{names.APPLICATION_NAME}%3Dmover"
    pods = affinity.http.get(f"/api/v1/namespaces/{ACME}/pods?labelSelector={query}").json["items"]
    assert [each["spec"]["nodeSelector"] for each in pods] == [{ZONE: "dc2"}] * 2
    assert {each["metadata"]["labels"][names.AFFINITY_CLASS] for each in pods} == {"dc2"}
    affinity.wait_until(
        lambda: names.PREVIOUS_CLASS not in affinity.release("Postgres", ACME, "mover")["metadata"]["labels"],
        "the change is over",
    )


def test_a_chart_without_the_selector_is_reported_on_its_application(affinity):
    chart = {"kind": "ExternalArtifact", "name": "forgetful-sloppy"}
    affinity.definition("Sloppy", chartRef=chart)
    affinity.application_release("Sloppy", ACME, "broken")

    condition = affinity.wait_for_condition("Sloppy", "broken", "Ready", "InstallFailed", ACME)

    assert "missing required nodeSelector topology.kubernetes.io/zone=dc1" in condition["message"]
    mended = {"spec": {"release": {"chartRef": {"name": "careful-sloppy"}}}}
    assert affinity.patch(names.DEFINITION_KIND, "sloppy", mended).status == 200
    affinity.wait_for_condition("Sloppy", "broken", "Ready", "InstallSucceeded", ACME)
