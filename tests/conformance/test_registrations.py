"""APIServices: both servers store and report them, only the real one forwards requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodeyard.testing.session import Session

PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
GROUP = "registrations.test"


def registration(version: str = "v1", **spec) -> dict:
    complete = {"group": GROUP, "version": version, "groupPriorityMinimum": 100, "versionPriority": 10, **spec}
    return {"metadata": {"name": f"{version}.{GROUP}"}, "spec": complete}


SERVICE = {"namespace": "nowhere", "name": "api"}


@pytest.fixture
def clean(http: Session) -> Iterator[None]:
    yield
    for version in ("v1", "v2"):
        http.delete(f"{PATH}/{version}.{GROUP}")


@pytest.fixture
def registered(http: Session, clean: None) -> dict:
    answer = http.post(PATH, registration(service=SERVICE))
    assert answer.status == 201, answer.content
    return answer.json


def test_one_with_a_service_is_listed_with_it(http: Session, registered: dict):
    listed = {each["metadata"]["name"]: each for each in http.get(PATH).json["items"]}

    assert listed[f"v1.{GROUP}"]["spec"]["service"] == {**SERVICE, "port": 443}


def test_a_watch_shows_it(http: Session, registered: dict):
    version = int(registered["metadata"]["resourceVersion"]) - 1
    query = {"resourceVersion": version, "fieldSelector": f"metadata.name=v1.{GROUP}"}

    with http.watch(PATH, query=query) as events:
        first = next(events)

    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", f"v1.{GROUP}")


def test_kubectl_is_shown_the_service(http: Session, registered: dict):
    table = http.get(f"{PATH}/v1.{GROUP}", accept=TABLE).json

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Service", "Available", "Age"]
    assert table["rows"][0]["cells"][:2] == [f"v1.{GROUP}", "nowhere/api"]


def test_one_without_a_service_is_available_from_the_start(http: Session, clean: None):
    made = http.post(PATH, registration("v2")).json

    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")
    assert "generation" not in made["metadata"]
    cells = http.get(f"{PATH}/v2.{GROUP}", accept=TABLE).json["rows"][0]["cells"]
    assert cells[1:3] == ["Local", "True"]


def test_its_status_is_written_separately_and_the_rest_is_kept(http: Session, registered: dict):
    condition = {"type": "Available", "status": "False", "reason": "Tested"}
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"versionPriority": 11}, "status": {"conditions": [condition]}}

    written = http.patch(f"{PATH}/v1.{GROUP}/status", patch).json

    assert written["spec"]["versionPriority"] == 10
    assert "labels" not in written["metadata"]
    assert written["status"]["conditions"][0]["reason"] == "Tested"


def test_a_condition_status_other_than_true_false_or_unknown_is_refused(http: Session, registered: dict):
    patch = {"status": {"conditions": [{"type": "Available", "status": "Perhaps"}]}}

    answer = http.patch(f"{PATH}/v1.{GROUP}/status", patch)

    assert answer.status == 422
    assert [cause["field"] for cause in answer.causes] == ["status.conditions[0].status"]
    assert answer.causes[0]["message"] == 'Unsupported value: "Perhaps": supported values: "True", "False", "Unknown"'


def test_an_update_needs_a_version_and_keeps_the_name_true(http: Session, registered: dict):
    body = registration(service=SERVICE, version="v1")
    assert http.put(f"{PATH}/v1.{GROUP}", body).status == 422

    answer = http.patch(f"{PATH}/v1.{GROUP}", {"spec": {"version": "v2"}})

    assert answer.status == 422
    assert [cause["field"] for cause in answer.causes] == ["metadata.name"]
