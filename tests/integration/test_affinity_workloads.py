"""Webhooks warn about workloads before their pods exist, and guard our labels."""

import pytest
from tests.builders.affinity_env import CONTAINERS, DRY, pod_body, set_body, unique

from nodeyard.capabilities.affinity import names

ZONE = "topology.kubernetes.io/zone"
WEST = {ZONE: "west"}
FORGED = {names.APPLICATION_NAME: "mine", names.AFFINITY_CLASS: "gpu"}


@pytest.fixture(scope="module")
def platform(affinity):
    affinity.affinity_class("west", nodeSelector=WEST)
    affinity.definition("Ledger")
    return affinity


@pytest.fixture
def home(platform):
    """A tenant with one application, released."""
    namespace = platform.tenant(unique("home"), defaultAffinityClass="west")
    platform.application_release("Ledger", namespace, "books")
    return namespace


def labels_of(obj):
    return {key: value for key, value in (obj["metadata"].get("labels") or {}).items() if "cozystack" in key}


def test_applying_a_chart_warns_of_pods_that_would_be_denied(platform, home):
    answer = platform.post(set_body(home, "ledger-books"), **DRY)

    assert answer.status == 201, answer.content
    assert answer.warnings == [
        f'299 - "template of StatefulSet {home}/ledger-books belongs to application with AffinityClass \\"west\\" but '
        f'missing required nodeSelector {ZONE}=west: its pods will be denied"'
    ]
    assert platform.post(set_body(home, "ledger-books", nodeSelector=WEST), **DRY).warnings == []


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_jobs_are_warned_of_too(platform, home, kind):
    plural = f"{kind.lower()}s"
    template = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
    spec = {"template": template}
    if kind == "CronJob":
        spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": spec}}
    metadata = {"name": "backup", "labels": {names.FLUX_NAME: "ledger-books"}}
    body = {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": spec}

    answer = platform.http.post(f"/apis/batch/v1/namespaces/{home}/{plural}", body, query=DRY)

    assert answer.status == 201, answer.content
    assert f"template of {kind} {home}/backup belongs" in answer.warnings[0]


def test_a_selector_that_would_make_pods_for_ever_is_refused(platform, home):
    body = set_body(home, "ledger-books", nodeSelector=WEST)
    body["spec"]["selector"] = {"matchLabels": FORGED}
    body["spec"]["template"]["metadata"]["labels"] = FORGED

    answer = platform.post(body, **DRY)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert f"{names.AFFINITY_CLASS}=gpu: nodeyard sets this label" in answer.message


def test_our_labels_can_be_neither_forged_nor_removed(platform, home):
    platform.install(home, "ledger-books", nodeSelector=WEST)
    made = platform.pod(home, "ledger-books", "books-0", labels=FORGED, nodeSelector=WEST)
    assert made.status == 201, made.content
    due = labels_of(made.json)
    assert (due[names.APPLICATION_NAME], due[names.AFFINITY_CLASS]) == ("books", "west")

    change = {"metadata": {"labels": {**FORGED, names.MANAGED: None, "other": "x"}}}
    changed = platform.patch("Pod", "books-0", change, home)

    assert changed.status == 200, changed.content
    assert labels_of(changed.json) == due
    assert changed.json["metadata"]["labels"]["other"] == "x"


def test_a_pod_whose_owner_was_recreated_is_not_of_its_application(platform, home):
    old = platform.install(home, "ledger-books", nodeSelector=WEST)
    platform.delete("StatefulSet", "ledger-books", home)
    platform.wait_until(lambda: platform.get("StatefulSet", "ledger-books", home) is None, "it is gone")
    platform.install(home, "ledger-books", nodeSelector=WEST)
    metadata = old["metadata"]
    former = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": metadata["name"], "uid": metadata["uid"]}

    def labels():
        answer = platform.post(pod_body(home, "orphan", [former], nodeSelector=WEST), **DRY)
        assert answer.status == 201, answer.content
        return labels_of(answer.json)

    # The deleted object is known until the watch delivers its deletion.
    platform.wait_until(lambda: labels() == {}, "it is of nobody")
