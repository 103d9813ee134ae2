"""Entries of managedFields: identity, order and maximum number."""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.kinds.go_zero import is_built_in, zero_object
from nodeyard.apiserver.managed_fields.fieldset import field_set
from nodeyard.apiserver.managed_fields.managers import (
    MAX_UPDATERS,
    Identity,
    applier,
    cap,
    entries_of,
    identity_of,
    managers_of,
    new_entry,
    updater,
)
from nodeyard.apiserver.managed_fields.scope import reconcile_with_schema
from nodeyard.apiserver.managed_fields.type_shape import shape_of
from nodeyard.schema.compile import compile_schema


def entry(manager: str, time: str | None = None, *, version: str = "v1", field: str = "") -> dict[str, Any]:
    return new_entry(updater(manager, version, ""), version, field_set((f"f:{field or manager}",)), time)


def test_an_applier_has_one_entry_for_all_versions() -> None:
    applied = new_entry(applier("ada", ""), "apps/v1", {}, None)
    assert identity_of(applied) == identity_of({**applied, "apiVersion": "apps/v2"})
    assert identity_of(entry("ada")) != identity_of(entry("ada", version="v2"))


def test_conflicts_name_an_updater_with_its_version() -> None:
    assert str(updater("ada", "apps/v1", "")) == '"ada" using apps/v1'
    assert str(updater("ada", "apps/v1", "status")) == '"ada" with subresource "status" using apps/v1'
    assert str(applier("ada", "")) == '"ada"'


def test_an_identity_has_a_text_to_sort_by() -> None:
    assert updater("a<b", "v1", "status").text() == (
        '{"manager":"a\\u003cb","operation":"Update","apiVersion":"v1","subresource":"status"}'
    )
    assert Identity("", "Apply", "", "").text() == '{"operation":"Apply"}'


def test_entries_are_in_order_of_operation_time_and_name() -> None:
    applied = new_entry(applier("zoe", ""), "v1", {}, "2026-01-03T00:00:00Z")
    listed = [entry("bob", "2026-01-02T00:00:00Z"), entry("ada", "2026-01-02T00:00:00Z"), entry("cyd"), applied]
    assert [each["manager"] for each in entries_of(managers_of(listed))] == ["zoe", "cyd", "ada", "bob"]


def test_the_oldest_updaters_are_merged_when_there_are_too_many() -> None:
    crowd = [entry(f"m{number:02}", f"2026-01-{number + 1:02}T00:00:00Z") for number in range(MAX_UPDATERS + 2)]
    capped = entries_of(cap(managers_of(crowd)))
    assert len(capped) == MAX_UPDATERS
    assert capped[0] == {
        **entry("ancient-changes", "2026-01-03T00:00:00Z"),
        "fieldsV1": {"f:m00": {}, "f:m01": {}, "f:m02": {}},
    }


def test_only_entries_of_one_version_are_merged() -> None:
    crowd = [entry("old", "2026-01-01T00:00:00Z", version="v0")]
    crowd += [entry(f"m{number:02}", f"2026-01-{number + 2:02}T00:00:00Z") for number in range(MAX_UPDATERS)]
    capped = entries_of(cap(managers_of(crowd)))
    assert [each["manager"] for each in capped[:3]] == ["old", "ancient-changes", "m02"]


def test_appliers_do_not_count() -> None:
    crowd = [new_entry(applier(f"m{number}", ""), "v1", field_set(("f:a",)), None) for number in range(20)]
    assert len(cap(managers_of(crowd))) == 20


def schema(**spec: Any) -> Any:
    return shape_of(compile_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}))


def test_the_owner_of_a_part_owns_the_whole_once_it_is_atomic() -> None:
    text = {"type": "string"}
    parts = {"type": "object", "properties": {"a": text, "b": text}}
    fields = field_set(("f:spec", "f:x", "f:a"), ("f:spec", "f:y"), ("f:spec", "f:l", 'v:"i"'))
    listed = {"type": "array", "items": text}
    same = schema(x=parts, y=text, l={**listed, "x-kubernetes-list-type": "set"})
    assert reconcile_with_schema(same, fields) is fields
    atomic = schema(x={**parts, "x-kubernetes-map-type": "atomic"}, y=text, l=listed)
    assert reconcile_with_schema(atomic, fields) == field_set(("f:spec", "f:x"), ("f:spec", "f:y"), ("f:spec", "f:l"))


def test_fields_outside_the_schema_do_not_drift() -> None:
    fields = field_set(("f:spec", "f:free", "f:a", "f:b"), ("f:spec", "f:gone", "f:a"))
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert reconcile_with_schema(schema(free=free), fields) is fields


def test_a_built_in_kind_starts_as_the_struct_it_is() -> None:
    assert zero_object("apps/v1", "Deployment")["spec"] == {
        "selector": None,
        "strategy": {},
        "template": {"metadata": {}, "spec": {"containers": None}},
    }
    assert is_built_in("apps/v1", "Deployment")


def test_a_custom_resource_starts_as_nothing_but_its_type() -> None:
    assert zero_object("example.com/v1", "Widget") == {"apiVersion": "example.com/v1", "kind": "Widget"}
    assert not is_built_in("example.com/v1", "Widget")
