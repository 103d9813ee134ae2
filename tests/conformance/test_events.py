"""Events: one collection, served by two groups."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import APPLY, TABLE

NEW = "/apis/events.k8s.io/v1/namespaces/{}/events"
OLD = "/api/v1/namespaces/{}/events"

ABOUT = {"kind": "Pod", "name": "p", "apiVersion": "v1"}


@pytest.fixture
def new(namespace) -> str:
    return NEW.format(namespace)


@pytest.fixture
def old(namespace) -> str:
    return OLD.format(namespace)


def event(namespace: str, name: str = "a", **more) -> dict:
    return {
        "metadata": {"name": name},
        "eventTime": "2026-11-16T22:00:00.123456Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Do",
        "reason": "Why",
        "regarding": {**ABOUT, "namespace": namespace},
        "note": "hello",
        "type": "Normal",
        **more,
    }


def core_event(namespace: str, name: str = "b") -> dict:
    return {
        "metadata": {"name": name},
        "involvedObject": {**ABOUT, "namespace": namespace},
        "reason": "Why",
        "message": "hello",
        "source": {"component": "kubelet", "host": "h"},
        "firstTimestamp": "2026-11-16T22:00:00Z",
        "lastTimestamp": "2026-11-16T22:00:01Z",
        "count": 2,
        "type": "Warning",
    }


def content(obj: dict) -> dict:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}


def test_an_event_of_the_new_group_is_one_of_the_core_group(http, new, old, namespace):
    created = http.post(new, event(namespace, series={"count": 3, "lastObservedTime": "2026-11-16T22:00:05.000000Z"}))
    seen = http.get(f"{old}/a").json

    assert created.status == 201
    assert (seen["kind"], seen["apiVersion"]) == ("Event", "v1")
    same = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
    assert [seen["metadata"][name] for name in same] == [created.json["metadata"][name] for name in same]
    assert content(seen) == {
        "involvedObject": {**ABOUT, "namespace": namespace},
        "reason": "Why",
        "message": "hello",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": "2026-11-16T22:00:00.123456Z",
        "series": {"count": 3, "lastObservedTime": "2026-11-16T22:00:05.000000Z"},
        "action": "Do",
        "reportingComponent": "example.com/c",
        "reportingInstance": "c-1",
    }


def test_an_event_of_the_core_group_is_one_of_the_new_group(http, new, old, namespace):
    assert http.post(old, core_event(namespace)).status == 201

    assert content(http.get(f"{new}/b").json) == {
        "eventTime": None,
        "reason": "Why",
        "regarding": {**ABOUT, "namespace": namespace},
        "note": "hello",
        "type": "Warning",
        "deprecatedSource": {"component": "kubelet", "host": "h"},
        "deprecatedFirstTimestamp": "2026-11-16T22:00:00Z",
        "deprecatedLastTimestamp": "2026-11-16T22:00:01Z",
        "deprecatedCount": 2,
    }


def test_an_event_is_changed_in_either_group(http, new, old, namespace):
    http.post(new, event(namespace))

    in_core = http.patch(f"{old}/a", {"count": 5})
    series = {"count": 2, "lastObservedTime": "2026-11-16T22:00:05.000000Z"}
    in_new = http.patch(f"{new}/a", {"series": series})
    applied = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "message": "again"}
    by_apply = http.patch(f"{old}/a", applied, APPLY, query={"fieldManager": "m", "force": "true"})
    fixed = http.patch(f"{new}/a", {"note": "other"})

    assert [answer.status for answer in (in_core, in_new, by_apply, fixed)] == [200, 200, 200, 422]
    assert fixed.causes[0]["field"] == "message"
    seen = http.get(f"{new}/a").json
    assert (seen["deprecatedCount"], seen["series"], seen["note"]) == (5, series, "again")


def test_events_are_listed_selected_and_shown_in_either_group(http, new, old, namespace):
    http.post(new, event(namespace))
    http.post(old, core_event(namespace))

    for path, selector in ((new, "regarding.name=p,type=Normal"), (old, "involvedObject.name=p,type=Normal")):
        assert [each["metadata"]["name"] for each in http.get(path).json["items"]] == ["a", "b"]
        chosen = http.get(path, query={"fieldSelector": selector}).json["items"]
        assert [each["metadata"]["name"] for each in chosen] == ["a"]
        rows = http.get(path, accept=TABLE).json["rows"]
        assert [row["cells"][1:4] for row in rows] == [["Normal", "Why", "pod/p"], ["Warning", "Why", "pod/p"]]


def test_a_watch_of_one_group_sees_what_the_other_does(http, new, old, namespace):
    revision = http.get(old).json["metadata"]["resourceVersion"]
    with http.watch(old, query={"resourceVersion": revision}) as events:
        http.post(new, event(namespace))
        http.patch(f"{new}/a", {"metadata": {"labels": {"x": "y"}}})
        http.delete(f"{new}/a")
        told = [next(events) for _ in range(3)]

    assert [each["type"] for each in told] == ["ADDED", "MODIFIED", "DELETED"]
    assert {each["object"]["message"] for each in told} == {"hello"}
    assert http.get(f"{old}/a").status == 404


def test_events_exist_in_both_groups(http, new, old, namespace):
    http.post(new, event(namespace))

    again = http.post(old, core_event(namespace, "a"))
    deleted = http.delete(f"{old}/a")

    assert (again.status, again.reason, deleted.status) == (409, "AlreadyExists", 200)
    assert http.get(f"{new}/a").status == 404
