"""Server-side apply: merging, pruning and ownership."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nodeyard.apiserver.managed_fields import ApplyConflict, ApplyError, apply, update
from nodeyard.kube.patch import merge_patch

from ...builders.managed_fields import ConfigMaps, Deployments, Samples, Widgets

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)


class Subject:
    """An object and the writes to it."""

    def __init__(self, kind: type[Samples]) -> None:
        self.kind, self.live = kind, None

    def apply(
        self, manager: str, *, force: bool = False, now: datetime = NOON, subresource: str = "", **body: Any
    ) -> Any:
        metadata = {"name": "x", **body.pop("metadata", {})}
        config = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata, **body}
        applied = apply(
            self.kind.schema,
            self.live,
            config,
            manager=manager,
            force=force,
            api_version=self.kind.api_version,
            subresource=subresource,
            now=now,
            reset=self.kind.reset[subresource],
        )
        self.live = applied if self.live is applied else merge_patch(applied, {"metadata": {"uid": "1"}})
        return self.live

    def patch(self, manager: str, **body: Any) -> Any:
        self.live = update(
            self.kind.schema,
            self.live,
            merge_patch(self.live or {}, body),
            manager=manager,
            api_version=self.kind.api_version,
            now=NOON,
            reset=self.kind.reset[""],
        )
        return self.live

    @property
    def owners(self) -> dict[tuple[str, str], Any]:
        entries = self.live["metadata"].get("managedFields", [])
        return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


@pytest.fixture
def widget() -> Subject:
    return Subject(Widgets)


@pytest.fixture
def config_map() -> Subject:
    return Subject(ConfigMaps)


def test_applying_to_nothing_creates(config_map: Subject) -> None:
    created = config_map.apply("ada", data={"a": "1"})
    assert created["data"] == {"a": "1"}
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "ada",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-01-01T12:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]


def test_applying_the_same_again_returns_the_live_object(config_map: Subject) -> None:
    config_map.apply("ada", data={"a": "1"})
    live = config_map.live
    assert config_map.apply("ada", data={"a": "1"}, now=LATER) is live


def test_fields_no_longer_applied_are_removed(config_map: Subject) -> None:
    config_map.apply("ada", data={"a": "1", "b": "2"}, metadata={"labels": {"x": "y"}})
    config_map.apply("ada", data={"b": "2"})
    assert config_map.live["data"] == {"b": "2"}
    assert "labels" not in config_map.live["metadata"]


def test_fields_with_another_owner_stay(config_map: Subject) -> None:
    config_map.apply("ada", data={"a": "1", "b": "2"})
    config_map.apply("bob", data={"a": "1"})
    config_map.apply("ada", data={"b": "2"})
    assert config_map.live["data"] == {"a": "1", "b": "2"}
    assert config_map.owners == {
        ("ada", "Apply"): {"f:data": {"f:b": {}}},
        ("bob", "Apply"): {"f:data": {"f:a": {}}},
    }


def test_foreign_fields_stay(widget: Subject) -> None:
    widget.apply("ada", spec={"parts": [{"name": "x", "value": "1"}]})
    widget.patch("bob", spec={"parts": [{"name": "x", "value": "1"}, {"name": "y"}], "text": "t"})
    widget.apply("ada", spec={})
    assert widget.live["spec"] == {"parts": [{"name": "y"}], "text": "t"}


def test_sharing_a_value_takes_no_time(config_map: Subject) -> None:
    config_map.apply("ada", data={"a": "1"})
    config_map.apply("bob", data={"a": "1"}, now=LATER)
    entries = {entry["manager"]: entry for entry in config_map.live["metadata"]["managedFields"]}
    assert "time" not in entries["bob"]
    assert entries["ada"]["time"] == "2026-01-01T12:00:00Z"


def test_changing_a_field_of_another_owner_is_a_conflict(config_map: Subject) -> None:
    config_map.apply("ada", data={"a": "1"})
    with pytest.raises(ApplyConflict) as caught:
        config_map.apply("bob", data={"a": "2"})
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "ada": .data.a'
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.causes() == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "ada"', "field": ".data.a"}
    ]


def test_several_conflicts_are_listed_by_manager(config_map: Subject) -> None:
    config_map.apply("zoe", data={"a": "1", "b": "1"})
    config_map.patch("ada", data={"c": "1"}, metadata={"labels": {"x": "y"}})
    with pytest.raises(ApplyConflict) as caught:
        config_map.apply("bob", data={"a": "2", "b": "2", "c": "2"}, metadata={"labels": {"x": "z"}})
    assert str(caught.value) == (
        "Apply failed with 4 conflicts: "
        'conflicts with "ada" using v1:\n- .data.c\n- .metadata.labels.x\n'
        'conflicts with "zoe":\n- .data.a\n- .data.b'
    )


def test_force_takes_ownership(config_map: Subject) -> None:
    config_map.apply("ada", data={"a": "1", "b": "1"})
    config_map.apply("bob", data={"a": "2"}, force=True)
    assert config_map.live["data"] == {"a": "2", "b": "1"}
    assert config_map.owners == {
        ("ada", "Apply"): {"f:data": {"f:b": {}}},
        ("bob", "Apply"): {"f:data": {"f:a": {}}},
    }


def test_atomic_lists_are_one_field(widget: Subject) -> None:
    widget.apply("ada", spec={"steps": [{"run": "a"}]})
    with pytest.raises(ApplyConflict, match=r"\.spec\.steps$"):
        widget.apply("bob", spec={"steps": [{"run": "a"}, {"run": "b"}]})


def test_items_of_a_list_map_have_owners_of_their_own(widget: Subject) -> None:
    widget.apply("ada", spec={"ports": [{"port": 80, "note": "a"}]})
    widget.apply("bob", spec={"ports": [{"port": 80, "protocol": "UDP", "note": "b"}]})
    assert widget.live["spec"]["ports"] == [
        {"port": 80, "note": "a"},
        {"port": 80, "protocol": "UDP", "note": "b"},
    ]
    with pytest.raises(ApplyConflict, match=r'\.spec\.ports\[port=80,protocol="TCP"\]\.note$'):
        widget.apply("bob", spec={"ports": [{"port": 80, "protocol": "TCP", "note": "b"}]})


def test_an_object_without_entries_was_there_before_the_first_apply(config_map: Subject) -> None:
    config_map.live = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "uid": "1"},
        "data": {"a": "1", "b": "1"},
    }
    with pytest.raises(ApplyConflict, match='"before-first-apply" using v1: .data.a'):
        config_map.apply("ada", data={"a": "2"})
    config_map.apply("ada", data={"a": "2"}, force=True)
    assert config_map.owners == {
        ("ada", "Apply"): {"f:data": {"f:a": {}}},
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:b": {}}},
    }


def test_the_status_is_applied_by_its_own_endpoint(widget: Subject) -> None:
    widget.apply("ada", spec={"text": "t"}, status={"phase": "ignored"})
    widget.apply("ada", subresource="status", status={"phase": "up"}, spec={"text": "ignored"})
    entries = widget.live["metadata"]["managedFields"]
    assert [(entry.get("subresource"), entry["fieldsV1"]) for entry in entries] == [
        (None, {"f:spec": {"f:text": {}}}),
        ("status", {"f:status": {"f:phase": {}}}),
    ]


def test_an_applier_that_applies_nothing_has_no_entry(config_map: Subject) -> None:
    config_map.apply("ada", data={"a": "1"})
    config_map.apply("bob")
    config_map.apply("ada")
    assert config_map.owners == {}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"metadata": {"managedFields": []}}, 400, "metadata.managedFields must be nil"),
        ({"kind": "Gadget"}, 400, "invalid object type: ownership.nodeyard.dev/v1, Kind=Gadget"),
        ({"apiVersion": "v1"}, 400, "invalid object type: /v1, Kind=Widget"),
        ({"spec": {"unknown": 1}}, 500, ".spec.unknown: field not declared in schema"),
        ({"spec": {"size": "1"}}, 500, ".spec.size: expected numeric (int or float), got string"),
        ({"spec": {"text": 1}}, 500, ".spec.text: expected string, got &value.valueUnstructured{Value:1}"),
        ({"spec": {"labels": []}}, 500, ".spec.labels: expected map, got &{[]}"),
        ({"spec": {"tags": {}}}, 500, ".spec.tags: expected list, got &{map[]}"),
        ({"spec": {"either": {}}}, 500, ".spec.either: expected any scalar, got &{map[]}"),
        ({"spec": {"tags": ["a", "a"]}}, 500, '.spec.tags: duplicate entries for key [="a"]'),
        (
            {"spec": {"parts": [{"name": "x"}, {"name": "x"}]}},
            500,
            '.spec.parts: duplicate entries for key [name="x"]',
        ),
        (
            {"spec": {"parts": [None]}},
            500,
            ".spec.parts: element 0: associative list with keys may not have a null element",
        ),
        (
            {"spec": {"steps": [{"run": True}], "size": []}},
            500,
            "errors:\n  .spec.size: expected numeric (int or float), got []interface {}\n"
            "  .spec.steps[0].run: expected string, got &value.valueUnstructured{Value:true}",
        ),
    ],
    ids=str,
)
def test_a_configuration_of_another_type_is_refused(
    widget: Subject, body: dict[str, Any], code: int, message: str
) -> None:
    widget.apply("ada", spec={"text": "t"})
    prefix = "failed to create typed patch object (/x; ownership.nodeyard.dev/v1, Kind=Widget): "
    with pytest.raises(ApplyError) as caught:
        widget.apply("ada", **{"spec": {}, **body})
    assert caught.value.code == code
    assert str(caught.value) == (message if code == 400 else prefix + message)


def test_live_objects_are_never_changed_in_place() -> None:
    deployment = Subject(Deployments)
    container = {"name": "c", "image": "i"}
    deployment.apply("ada", spec={"template": {"spec": {"containers": [container]}}})
    before = deployment.live
    text = str(before)
    deployment.apply("bob", spec={"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "E"}]}]}}})
    deployment.apply("ada", spec={})
    assert str(before) == text


class TestWithClientSideApply:
    """kubectl apply, before and after --server-side."""

    ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
    CONFIG = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1"}}'

    @pytest.fixture
    def applied(self, config_map: Subject) -> Subject:
        metadata = {"name": "x", "uid": "1", "annotations": {self.ANNOTATION: self.CONFIG}}
        config_map.live = None
        new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}
        config_map.live = update(
            ConfigMaps.schema, None, new, manager="kubectl-client-side-apply", api_version="v1", now=NOON
        )
        return config_map

    def test_kubectl_apply_takes_over_client_side_applied_fields(self, applied: Subject) -> None:
        applied.apply("kubectl", data={"a": "2"})
        assert applied.live["data"] == {"a": "2"}

    def test_the_annotation_follows(self, applied: Subject) -> None:
        applied.apply("kubectl", data={"a": "2"}, metadata={"annotations": {"note": "<x>"}})
        assert applied.live["metadata"]["annotations"][self.ANNOTATION] == (
            '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap",'
            '"metadata":{"annotations":{"note":"\\u003cx\\u003e"},"name":"x"}}\n'
        )

    def test_others_are_not_kubectl(self, applied: Subject) -> None:
        with pytest.raises(ApplyConflict, match="kubectl-client-side-apply"):
            applied.apply("helm", data={"a": "2"})

    def test_a_field_changed_by_others_since_is_a_conflict(self, applied: Subject) -> None:
        applied.patch("bob", data={"a": "changed", "b": "1"})
        with pytest.raises(ApplyConflict, match='"bob" using v1: .data.a'):
            applied.apply("kubectl", data={"a": "2"})

    def test_a_broken_annotation_permits_nothing(self, applied: Subject) -> None:
        applied.live = merge_patch(applied.live, {"metadata": {"annotations": {self.ANNOTATION: "{"}}})
        with pytest.raises(ApplyConflict):
            applied.apply("kubectl", data={"a": "2"})

    def test_an_annotation_that_grows_too_big_is_dropped(self, applied: Subject) -> None:
        applied.apply("kubectl", data={"a": "x" * 300_000})
        assert applied.live["metadata"]["annotations"] == {}
