"""Watches: events, start revision, and how they end."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import METADATA, TABLE


def configmap(name: str, data: dict | None = None, **labels: str) -> dict:
    return {"metadata": {"name": name, "labels": labels}, "data": data or {}}


def seen(event: dict) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


def revision(http, path: str) -> str:
    return http.get(path).json["metadata"]["resourceVersion"]


def test_a_watch_from_a_revision_sees_every_change_after_it(http, configmaps):
    with http.watch(configmaps, query={"resourceVersion": revision(http, configmaps)}) as events:
        http.post(configmaps, configmap("a"))
        http.patch(f"{configmaps}/a", {"data": {"k": "v"}})
        http.delete(f"{configmaps}/a")

        assert [seen(next(events)) for _ in range(3)] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_a_watch_from_an_earlier_revision_replays_what_happened(http, configmaps):
    before = revision(http, configmaps)
    http.post(configmaps, configmap("a"))
    http.delete(f"{configmaps}/a")

    with http.watch(configmaps, query={"resourceVersion": before}) as events:
        assert [seen(next(events)) for _ in range(2)] == [("ADDED", "a"), ("DELETED", "a")]


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}], ids=["no revision", "revision 0"])
def test_a_watch_without_a_revision_begins_with_existing_objects(http, configmaps, query):
    http.post(configmaps, configmap("a"))
    http.post(configmaps, configmap("b"))

    with http.watch(configmaps, query=query) as events:
        assert sorted(seen(next(events)) for _ in range(2)) == [("ADDED", "a"), ("ADDED", "b")]


def test_every_event_carries_the_whole_object_and_its_own_revision(http, configmaps):
    with http.watch(configmaps, query={"resourceVersion": revision(http, configmaps)}) as events:
        created = http.post(configmaps, configmap("a", {"k": "v"})).json
        changed = http.patch(f"{configmaps}/a", {"data": {"k": "w"}}).json

        assert next(events)["object"] == created
        assert next(events)["object"] == changed


def test_the_last_event_of_an_object_has_a_later_revision_than_its_last_change(http, configmaps):
    created = http.post(configmaps, configmap("a")).json["metadata"]
    with http.watch(configmaps, query={"resourceVersion": created["resourceVersion"]}) as events:
        http.delete(f"{configmaps}/a")

        event = next(events)
        assert seen(event) == ("DELETED", "a")
        assert int(event["object"]["metadata"]["resourceVersion"]) > int(created["resourceVersion"])


def test_an_object_that_enters_a_selection_is_added_and_one_that_leaves_it_deleted(http, configmaps):
    query = {"resourceVersion": revision(http, configmaps), "labelSelector": "tier=web"}
    with http.watch(configmaps, query=query) as events:
        http.post(configmaps, configmap("a", tier="db"))
        http.patch(f"{configmaps}/a", {"metadata": {"labels": {"tier": "web"}}})
        http.patch(f"{configmaps}/a", {"data": {"k": "v"}})
        http.patch(f"{configmaps}/a", {"metadata": {"labels": {"tier": "db"}}})

        assert [seen(next(events)) for _ in range(3)] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_an_object_that_left_the_selection_is_shown_in_its_last_state(http, configmaps):
    http.post(configmaps, configmap("a", tier="web"))
    query = {"resourceVersion": revision(http, configmaps), "labelSelector": "tier=web"}
    with http.watch(configmaps, query=query) as events:
        left = http.patch(f"{configmaps}/a", {"metadata": {"labels": {"tier": "db"}}}).json

        shown = next(events)["object"]["metadata"]
        assert shown["labels"] == {"tier": "web"}
        assert shown["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_a_watch_can_be_of_one_object(http, configmaps):
    query = {"resourceVersion": revision(http, configmaps), "fieldSelector": "metadata.name=b"}
    with http.watch(configmaps, query=query) as events:
        http.post(configmaps, configmap("a"))
        http.post(configmaps, configmap("b"))

        assert seen(next(events)) == ("ADDED", "b")


def test_initial_events_end_with_an_annotated_bookmark(http, configmaps):
    http.post(configmaps, configmap("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

    with http.watch(configmaps, query=query) as events:
        assert seen(next(events)) == ("ADDED", "a")
        bookmark = next(events)
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "ConfigMap"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        http.delete(f"{configmaps}/a")
        deleted = next(events)
        assert seen(deleted) == ("DELETED", "a")
        assert int(deleted["object"]["metadata"]["resourceVersion"]) > int(
            bookmark["object"]["metadata"]["resourceVersion"]
        )


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}], ids=["no revision", "revision 0"])
def test_a_watch_without_a_revision_marks_the_end_of_existing_objects_for_clients_that_allow_bookmarks(
    http, configmaps, query
):
    http.post(configmaps, configmap("a"))

    with http.watch(configmaps, query={"allowWatchBookmarks": "true", **query}) as events:
        assert seen(next(events)) == ("ADDED", "a")
        assert next(events)["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_from_a_future_revision_sees_later_events(http, configmaps):
    later = int(revision(http, configmaps)) + 5
    with http.watch(configmaps, query={"resourceVersion": later}) as events:
        made = [http.post(configmaps, configmap(f"a{number}")).json["metadata"] for number in range(10)]
        after = [each["name"] for each in made if int(each["resourceVersion"]) > later]

        assert 0 < len(after) < len(made)
        assert seen(next(events)) == ("ADDED", after[0])


def test_initial_events_can_be_declined(http, configmaps):
    http.post(configmaps, configmap("a"))
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}

    with http.watch(configmaps, query=query) as events:
        http.post(configmaps, configmap("b"))
        assert seen(next(events)) == ("ADDED", "b")


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true"},
        {"resourceVersionMatch": "NotOlderThan"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
    ],
    ids=["no match", "match alone", "exact"],
)
def test_options_that_do_not_go_together_are_invalid(http, configmaps, query):
    answer = http.get(configmaps, query={"watch": "true", "timeoutSeconds": 1, **query})

    assert (answer.status, answer.reason) == (422, "Invalid")


@pytest.mark.parametrize(
    ("query", "causes"),
    [
        ({"resourceVersionMatch": "Exact"}, 2),
        ({"resourceVersionMatch": "Exact", "sendInitialEvents": "true"}, 2),
        ({"resourceVersionMatch": "NotOlderThan"}, 1),
        ({"sendInitialEvents": "false"}, 1),
    ],
)
def test_every_contradiction_is_reported(http, configmaps, query, causes):
    answer = http.get(configmaps, query={"watch": "true", "timeoutSeconds": 1, **query})

    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["resourceVersionMatch"] * causes)


def test_initial_events_of_the_future_time_out_in_the_stream(http, configmaps):
    query = {"resourceVersion": "999999999", "resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true"}
    with http.watch(configmaps, query=query) as events:
        (told,) = events

    assert (told["type"], told["object"]["code"], told["object"]["reason"]) == ("ERROR", 504, "Timeout")


def test_a_watch_ends_after_its_timeout(http, configmaps):
    answer = http.get(configmaps, query={"watch": "true", "timeoutSeconds": 1, "resourceVersion": "0"})

    assert (answer.status, answer.content) == (200, b"")


def test_a_watch_can_show_metadata_only(http, configmaps):
    with http.watch(configmaps, query={"resourceVersion": revision(http, configmaps)}, accept=METADATA) as events:
        http.post(configmaps, configmap("a", {"k": "v"}))

        shown = next(events)["object"]
        assert (shown["kind"], shown["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert "data" not in shown


def test_a_watch_can_show_tables_with_columns_in_the_first_alone(http, configmaps):
    with http.watch(configmaps, query={"resourceVersion": revision(http, configmaps)}, accept=TABLE) as events:
        http.post(configmaps, configmap("a"))
        http.patch(f"{configmaps}/a", {"data": {"k": "v"}})
        first, second = next(events), next(events)

        assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert second["object"].get("columnDefinitions") is None
        assert second["object"]["rows"][0]["cells"][:2] == ["a", 1]


def test_all_namespaces_can_be_watched_together(http, configmaps, fresh):
    name = fresh("everywhere")
    with http.watch("/api/v1/configmaps", query={"resourceVersion": revision(http, configmaps)}) as events:
        http.post(configmaps, configmap(name))

        assert any(seen(event) == ("ADDED", name) for event in events)
