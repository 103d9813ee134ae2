"""Validation of metadata; most of it is in the recorded cases."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.metadata import ANNOTATIONS_MAX, create_faults, distinct_owners, update_faults

from .kinds.pipeline import RESOURCES

CONFIG_MAPS = RESOURCES["", "configmaps"]
IDENTITY = {"name": "x", "namespace": "d", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}


def obj(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {**IDENTITY, **metadata}}


def created(**metadata: Any) -> list[str]:
    return [str(error) for error in create_faults(CONFIG_MAPS, obj(**metadata))]


def changed(before: dict[str, Any], **metadata: Any) -> list[str]:
    return [str(error) for error in update_faults(CONFIG_MAPS, obj(**metadata), obj(**before))]


def test_plain_metadata_is_fine() -> None:
    assert created(labels={"a/b": "c"}, annotations={"A.b/c": "anything at all"}, finalizers=["a/b"]) == []


def test_annotations_may_not_grow_without_end() -> None:
    assert created(annotations={"a": "x" * (ANNOTATIONS_MAX - 1)}) == []
    assert created(annotations={"a": "x" * ANNOTATIONS_MAX}) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "creationTimestamp"])
def test_identity_never_changes(field: str) -> None:
    assert changed({}, **{field: "other"}) == [f'metadata.{field}: Invalid value: "other": field is immutable']


def test_a_namespace_is_needed_where_the_kind_has_one_and_refused_elsewhere() -> None:
    assert [str(e) for e in create_faults(CONFIG_MAPS, obj(namespace=""))] == ["metadata.namespace: Required value"]
    nodes = create_faults(RESOURCES["", "nodes"], obj())
    assert [str(error) for error in nodes] == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_no_finalizer_is_added_to_what_is_being_deleted() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
    assert changed(leaving, **leaving) == []
    assert changed(leaving, **{**leaving, "finalizers": []}) == []
    (error,) = changed(leaving, **{**leaving, "finalizers": ["a/b", "c/d"]})
    assert error == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"c/d"}'
    )


def test_generation_never_goes_back() -> None:
    assert changed({"generation": 2}, generation=1) == [
        "metadata.generation: Invalid value: 1: must not be decremented"
    ]


def test_unchanged_metadata_is_not_validated_again() -> None:
    assert changed({"labels": {"bad key": "x"}}, labels={"bad key": "x"}) == []


def test_records_of_ownership_are_checked() -> None:
    entry = {"operation": "Guess", "fieldsType": "Other", "manager": "m" * 129}
    assert created(managedFields=[entry]) == [
        'metadata.managedFields[0].operation: Invalid value: "Guess": must be `Apply` or `Update`',
        'metadata.managedFields[0].fieldsType: Invalid value: "Other": must be `FieldsV1`',
        "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
    ]


@pytest.mark.timeout(10)
def test_tens_of_thousands_of_owners_are_compared_in_linear_time() -> None:
    owners = [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": str(number)} for number in range(50_000)]

    found, repeated = distinct_owners(obj(ownerReferences=[*owners, {**owners[0]}, owners[1]]))

    assert found["metadata"]["ownerReferences"] == owners
    assert repeated == ["0", "1"]


@pytest.mark.timeout(10)
def test_thousands_of_controllers_are_written_once_for_all_errors() -> None:
    owner = {"apiVersion": "v1", "kind": "A", "name": "a", "controller": True}
    owners = [{**owner, "uid": str(number)} for number in range(9999)]

    errors = create_faults(CONFIG_MAPS, obj(ownerReferences=owners))

    assert len(errors) == 9998
    assert all(error.value is errors[0].value for error in errors)
