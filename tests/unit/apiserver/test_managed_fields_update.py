"""A manager owns the fields that it changes by create, update or patch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nodeyard.apiserver.managed_fields import keep_times, managed_fields_fault, update
from nodeyard.kube.patch import merge_patch

from ...builders.managed_fields import ConfigMaps, Nodes, Samples, Widgets

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)


def write(
    kind: type[Samples], live: Any, new: Any, manager: str = "ada", now: datetime = NOON, subresource: str = ""
) -> Any:
    return update(
        kind.schema,
        live,
        new,
        manager=manager,
        api_version=kind.api_version,
        subresource=subresource,
        now=now,
        reset=kind.reset[subresource],
    )


def create(kind: type[Samples], manager: str = "ada", **content: Any) -> Any:
    metadata = {"name": "x", "uid": "1", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    metadata.update(content.pop("metadata", {}))
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content}
    return write(kind, None, obj, manager)


def owners(obj: Any) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_the_creator_owns_its_fields_but_not_those_set_by_the_server() -> None:
    created = create(ConfigMaps, metadata={"labels": {"a": "b"}}, data={"k": "v"})
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "ada",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T12:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:k": {}},
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            },
        }
    ]


def test_a_built_in_kind_has_named_fields_before_anyone_sets_them() -> None:
    node = create(Nodes, spec={"podCIDR": "10.0.0.0/24"})
    assert owners(node) == {"ada": {"f:spec": {"f:podCIDR": {}}}}
    widget = create(Widgets, spec={"text": "t"})
    assert owners(widget) == {"ada": {"f:spec": {".": {}, "f:text": {}}}}


def test_the_writer_of_a_changed_field_becomes_its_owner() -> None:
    live = create(ConfigMaps, data={"a": "1", "b": "1"})
    changed = write(ConfigMaps, live, merge_patch(live, {"data": {"a": "2", "c": "2"}}), "bob", LATER)
    assert owners(changed) == {
        "ada": {"f:data": {".": {}, "f:b": {}}},
        "bob": {"f:data": {"f:a": {}, "f:c": {}}},
    }
    assert [entry["time"] for entry in changed["metadata"]["managedFields"]] == [
        "2026-01-01T12:00:00Z",
        "2026-01-01T13:00:00Z",
    ]


def test_a_second_write_of_the_same_manager_joins_its_first() -> None:
    live = create(ConfigMaps, data={"a": "1"})
    changed = write(ConfigMaps, live, merge_patch(live, {"data": {"b": "2"}}), now=LATER)
    assert owners(changed) == {"ada": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    assert changed["metadata"]["managedFields"][0]["time"] == "2026-01-01T13:00:00Z"


def test_removed_fields_have_no_owner_and_empty_entries_are_removed() -> None:
    live = create(ConfigMaps, data={"a": "1"})
    live = write(ConfigMaps, live, merge_patch(live, {"data": {"b": "2"}}), "bob")
    removed = write(ConfigMaps, live, merge_patch(live, {"data": {"b": None}}), "cyd")
    assert owners(removed) == {"ada": {"f:data": {".": {}, "f:a": {}}}}


def test_a_write_without_changes_keeps_every_entry_identical() -> None:
    live = create(ConfigMaps, data={"a": "1"})
    again = write(ConfigMaps, live, {**live, "data": {"a": "1"}}, "bob", LATER)
    assert again["metadata"]["managedFields"] is live["metadata"]["managedFields"]


def test_entries_that_a_write_does_not_touch_stay_the_same_objects() -> None:
    live = create(Nodes, metadata={"labels": {"a": "b"}})
    live = write(Nodes, live, merge_patch(live, {"metadata": {"annotations": {"c": "d"}}}), "bob")
    changed = write(Nodes, live, merge_patch(live, {"metadata": {"labels": {"e": "f"}}}), "cyd")
    assert changed["metadata"]["managedFields"][:2] == live["metadata"]["managedFields"]
    assert changed["metadata"]["managedFields"][0] is live["metadata"]["managedFields"][0]


def test_an_endpoint_gives_no_ownership_of_fields_that_it_resets() -> None:
    live = create(Widgets, spec={"text": "t"}, status={"phase": "ignored"})
    assert owners(live) == {"ada": {"f:spec": {".": {}, "f:text": {}}}}
    live = {name: value for name, value in live.items() if name != "status"}
    changed = {**live, "spec": {"text": "ignored"}, "status": {"phase": "up"}}
    status = write(Widgets, live, changed, "bob", subresource="status")
    assert owners(status)["bob"] == {"f:status": {".": {}, "f:phase": {}}}
    assert owners(status)["ada"] == owners(live)["ada"]
    assert status["metadata"]["managedFields"][1]["subresource"] == "status"


def test_an_object_without_entries_stays_without() -> None:
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "1"}, "data": {}}
    changed = write(ConfigMaps, live, {**live, "data": {"a": "1"}})
    assert "managedFields" not in changed["metadata"]


def test_managers_without_a_name_are_unknown() -> None:
    assert owners(create(ConfigMaps, manager="", data={"a": "1"})) == {"unknown": {"f:data": {".": {}, "f:a": {}}}}


@pytest.mark.parametrize("entries", [[], [{}]], ids=["empty-list", "empty-entry"])
def test_a_client_can_ask_to_forget_all_owners(entries: Any) -> None:
    live = create(ConfigMaps, data={"a": "1"})
    forgotten = write(ConfigMaps, live, {**live, "metadata": {**live["metadata"], "managedFields": entries}})
    assert "managedFields" not in forgotten["metadata"]


def test_an_empty_list_in_a_custom_resource_forgets_nothing() -> None:
    live = create(Widgets, spec={"text": "t"})
    kept = write(Widgets, live, {**live, "metadata": {**live["metadata"], "managedFields": []}})
    assert kept["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_a_client_cannot_forget_owners_through_a_subresource() -> None:
    live = create(Widgets, spec={"text": "t"})
    new = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    assert (
        write(Widgets, live, new, subresource="status")["metadata"]["managedFields"]
        == live["metadata"]["managedFields"]
    )


def test_entries_that_a_client_sends_are_taken_in_canonical_form() -> None:
    live = create(Widgets, spec={"ports": [{"port": 80, "protocol": "TCP"}]})
    sent = {
        "operation": "Update",
        "apiVersion": Widgets.api_version,
        "manager": "dan",
        "time": "2026-01-01T13:00:00+01:00",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"z:future": {}, "f:spec": {"f:ports": {'k:{"protocol": "TCP", "port": 80}': {}, ".": {}}}},
    }
    new = {**live, "metadata": {**live["metadata"], "managedFields": [sent]}}
    assert write(Widgets, live, new)["metadata"]["managedFields"] == [
        {
            **sent,
            "time": "2026-01-01T12:00:00Z",
            "fieldsV1": {"f:spec": {"f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {}}}},
        }
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"operation": "Nonsense"}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": ""}, "missing fieldsType in managed fields entry 0"),
        ({"fieldsType": "FieldsV2"}, 'invalid fieldsType "FieldsV2" in managed fields entry 0'),
        ({"fieldsV1": {"name": {}}}, "error decoding set: parsing key as path element: missing colon: name"),
        ({"fieldsV1": []}, "error decoding set: expected an object"),
    ],
)
def test_invalid_entries_are_refused(change: dict[str, Any], fault: str) -> None:
    live = create(ConfigMaps, data={"a": "1"})
    bad = [{**live["metadata"]["managedFields"][0], **change}]
    assert managed_fields_fault(bad) == fault
    kept = write(ConfigMaps, live, {**live, "metadata": {**live["metadata"], "managedFields": bad}})
    assert kept["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_good_entries_have_no_fault() -> None:
    assert managed_fields_fault(create(ConfigMaps, data={"a": "1"})["metadata"]["managedFields"]) == ""
    assert managed_fields_fault(None) == ""


def test_list_items_with_equal_keys_clear_managed_fields() -> None:
    live = create(Widgets, spec={"text": "t"})
    broken = write(Widgets, live, merge_patch(live, {"spec": {"parts": [{"value": "nameless"}]}}))
    assert "managedFields" not in broken["metadata"]


def test_entries_in_other_versions_are_kept() -> None:
    live = create(Widgets, spec={"text": "t"})
    entry = live["metadata"]["managedFields"][0]
    old = {**entry, "manager": "old", "apiVersion": "ownership.nodeyard.dev/v0"}
    live = {**live, "metadata": {**live["metadata"], "managedFields": [entry, old]}}
    new = merge_patch(live, {"spec": {"size": 1}})
    arguments: dict[str, Any] = {"manager": "bob", "api_version": Widgets.api_version, "now": NOON}
    assert set(owners(update(Widgets.schema, live, new, **arguments))) == {"ada", "old", "bob"}


def test_a_write_that_only_moved_a_time_changed_nothing() -> None:
    live = create(ConfigMaps, data={"a": "1"})
    entry = {**live["metadata"]["managedFields"][0], "time": "2026-01-01T13:00:00Z"}
    touched = {**live, "metadata": {**live["metadata"], "managedFields": [entry]}}
    assert keep_times(live, touched) == live
    changed = {**touched, "data": {"a": "2"}}
    assert keep_times(live, changed) is changed
    shared = {**touched, "metadata": {**touched["metadata"], "managedFields": [entry, {**entry, "manager": "bob"}]}}
    assert keep_times(live, shared) is shared
