"""Field sets are tries in the form of fieldsV1, and an algebra on them."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.managed_fields.fieldset import (
    difference,
    field_set,
    includes,
    intersection,
    members,
    ordered,
    union,
    without,
)

SPEC, REPLICAS, LABELS, APP, TIER = "f:spec", "f:replicas", "f:labels", "f:app", "f:tier"


def test_a_member_is_an_empty_node_or_one_with_a_dot() -> None:
    fields = field_set((SPEC, REPLICAS), (LABELS,), (LABELS, APP))
    assert fields == {"f:labels": {".": {}, "f:app": {}}, "f:spec": {"f:replicas": {}}}
    assert set(members(fields)) == {(SPEC, REPLICAS), (LABELS,), (LABELS, APP)}


def test_members_come_before_their_children() -> None:
    fields = field_set((LABELS, TIER), (LABELS,), (LABELS, APP), (SPEC,))
    assert list(members(fields)) == [(LABELS,), (SPEC,), (LABELS, APP), (LABELS, TIER)]


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        pytest.param(union, {"f:labels": {".": {}, "f:app": {}, "f:tier": {}}, "f:spec": {}}, id="union"),
        pytest.param(difference, {"f:labels": {"f:app": {}}}, id="difference"),
        pytest.param(intersection, {"f:labels": {}}, id="intersection"),
        pytest.param(without, {}, id="without"),
    ],
)
def test_sets_combine(combine: Any, expected: Any) -> None:
    left = field_set((LABELS,), (LABELS, APP))
    right = field_set((LABELS,), (LABELS, TIER), (SPEC,))
    assert combine(left, right) == expected


def test_a_child_stays_when_only_its_parent_is_removed() -> None:
    assert difference(field_set((LABELS, APP)), field_set((LABELS,))) == field_set((LABELS, APP))


def test_results_share_what_did_not_change() -> None:
    fields = field_set((SPEC, REPLICAS), (LABELS, APP))
    more = union(fields, field_set((LABELS, TIER)))
    assert more["f:spec"] is fields["f:spec"]
    assert union(more, fields) is more
    assert difference(fields, field_set((LABELS, TIER), ("f:status",))) is fields
    assert without(fields, field_set((LABELS, TIER))) is fields


def test_inclusion() -> None:
    fields = field_set((SPEC, REPLICAS), (LABELS, APP))
    assert includes(fields, field_set((LABELS, APP)))
    assert not includes(fields, field_set((LABELS,)))
    assert includes(fields, {})


def test_elements_stand_in_the_order_of_the_real_server() -> None:
    elements = ['k:{"port":443}', 'v:"b"', "v:10", "f:b", ".", "i:2", 'k:{"port":80}', "v:9", "f:a", "v:true", "i:10"]
    assert list(ordered({element: {} for element in elements})) == [
        ".",
        "f:a",
        "f:b",
        'k:{"port":80}',
        'k:{"port":443}',
        "v:9",
        "v:10",
        'v:"b"',
        "v:true",
        "i:2",
        "i:10",
    ]
