"""410 Gone: lists and watches from compacted revisions."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import Session

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
TOO_OLD = "The resourceVersion for the provided list is too old."


@pytest.fixture(scope="module")
def forgetful(another):
    """A server of its own, because its history is compacted."""
    return another()


@pytest.fixture(scope="module")
def http(forgetful) -> Session:
    return Session(forgetful.url, forgetful.authority.pem, forgetful.admin_token)


@pytest.fixture(scope="module")
def past(forgetful, http) -> dict[str, str]:
    """A revision before three objects, one of which is deleted, and a continue token; both compacted since."""
    before = http.get(CONFIGMAPS).json["metadata"]["resourceVersion"]
    for name in "abc":
        assert http.post(CONFIGMAPS, {"metadata": {"name": name}}).status == 201
    token = http.get(CONFIGMAPS, query={"limit": 1}).json["metadata"]["continue"]
    http.delete(f"{CONFIGMAPS}/b")
    assert http.get(CONFIGMAPS, query={"resourceVersion": before, "resourceVersionMatch": "Exact"}).status == 200
    forgetful.compact()
    return {"revision": before, "token": token}


def names(answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.json["items"]]


@pytest.mark.parametrize("more", [{"resourceVersionMatch": "Exact"}, {"limit": 5}], ids=["exact", "page"])
def test_a_list_of_a_forgotten_revision_is_gone(http, past, more):
    answer = http.get(CONFIGMAPS, query={"resourceVersion": past["revision"], **more})

    assert (answer.status, answer.reason, answer.message) == (410, "Expired", TOO_OLD)


@pytest.mark.parametrize("more", [{}, {"resourceVersionMatch": "NotOlderThan"}], ids=["plain", "not older"])
def test_a_list_that_may_be_newer_is_answered(http, past, more):
    answer = http.get(CONFIGMAPS, query={"resourceVersion": past["revision"], **more})

    assert (answer.status, names(answer)) == (200, ["a", "c"])


def test_an_expired_continue_token_is_gone_and_offers_another(http, past):
    answer = http.get(CONFIGMAPS, query={"limit": 1, "continue": past["token"]})

    assert (answer.status, answer.reason) == (410, "Expired")
    assert answer.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    rest = http.get(CONFIGMAPS, query={"limit": 5, "continue": answer.json["metadata"]["continue"]})
    assert (rest.status, names(rest)) == (200, ["c"])


def test_a_watch_from_a_compacted_revision_gets_an_error_event(http, past):
    with http.watch(CONFIGMAPS, query={"resourceVersion": past["revision"]}) as events:
        told = list(events)

    assert [event["type"] for event in told] == ["ERROR"]
    status = told[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {past['revision']} (")


def test_a_new_list_can_be_watched(http, past):
    revision = http.get(CONFIGMAPS).json["metadata"]["resourceVersion"]
    with http.watch(CONFIGMAPS, query={"resourceVersion": revision}) as events:
        http.post(CONFIGMAPS, {"metadata": {"name": "later"}})

        assert next(events)["object"]["metadata"]["name"] == "later"
    http.delete(f"{CONFIGMAPS}/later")


def test_a_watch_with_initial_events_needs_no_past(http, past):
    query = {
        "resourceVersion": past["revision"],
        "resourceVersionMatch": "NotOlderThan",
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
    }
    with http.watch(CONFIGMAPS, query=query) as events:
        assert sorted(next(events)["object"]["metadata"]["name"] for _ in range(2)) == ["a", "c"]
        assert next(events)["type"] == "BOOKMARK"
