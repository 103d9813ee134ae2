"""Merge of an applied configuration into the live object."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.managed_fields.fieldset import field_set, members
from nodeyard.apiserver.managed_fields.merge import merge
from nodeyard.apiserver.managed_fields.owned_set import ensure_named_members, remove_items, to_field_set
from nodeyard.apiserver.managed_fields.paths import render
from nodeyard.apiserver.managed_fields.type_shape import shape_of

from ...builders.managed_fields import Widgets

WIDGET = shape_of(Widgets.schema)


def merged(live: Any, config: Any) -> Any:
    return merge(WIDGET, {"spec": live}, {"spec": config})["spec"]


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        pytest.param({"text": "a", "size": 1}, {"text": "b"}, {"text": "b", "size": 1}, id="scalars-win"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}, id="maps-join"),
        pytest.param({"labels": {"a": "1"}}, {"labels": None}, {"labels": {"a": "1"}}, id="null-takes-no-map-away"),
        pytest.param({"maybe": "x"}, {"maybe": None}, {"maybe": None}, id="null-is-a-value-of-a-scalar"),
        pytest.param({"whole": {"a": "1"}}, {"whole": {"b": {}}}, {"whole": {"b": {}}}, id="atomic-maps-are-replaced"),
        pytest.param({"steps": [{"run": "a"}]}, {"steps": []}, {"steps": []}, id="atomic-lists-are-replaced"),
        pytest.param({"tags": ["a"]}, {"tags": []}, {"tags": ["a"]}, id="an-empty-set-takes-nothing-away"),
        pytest.param({"any": {"x": 1}}, {"any": "y"}, {"any": "y"}, id="another-type-wins"),
        pytest.param({"any": "y"}, {"any": {"x": 1}}, {"any": {"x": 1}}, id="and-the-other-way-round"),
        pytest.param(
            {"parts": [{"name": "x", "value": "1"}]},
            {"parts": [{"name": "x", "deep": {"a": "2"}}]},
            {"parts": [{"name": "x", "value": "1", "deep": {"a": "2"}}]},
            id="items-join",
        ),
    ],
)
def test_parts_are_merged_as_their_type_says(live: Any, config: Any, result: Any) -> None:
    assert merged(live, config) == result


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        ("abc", "", "abc"),
        ("", "abc", "abc"),
        ("abc", "ca", "bca"),
        ("abc", "dc", "abdc"),
        ("abc", "d", "abcd"),
        ("abc", "bd", "abcd"),
        ("abcd", "dxb", "acdxb"),
        ("aab", "b", "aab"),
        ("aab", "ca", "cab"),
    ],
)
def test_the_order_of_the_configuration_is_kept_and_the_rest_stands_around_it(
    live: str, config: str, result: str
) -> None:
    assert "".join(merged({"tags": list(live)}, {"tags": list(config)}).get("tags", [])) == result


def test_unchanged_parts_are_the_same_object() -> None:
    live = {"spec": {"parts": [{"name": "x"}, {"name": "y"}], "labels": {"a": "1"}}, "status": {"phase": "up"}}
    result = merge(WIDGET, live, {"spec": {"parts": [{"name": "y", "value": "2"}]}})
    assert result["status"] is live["status"]
    assert result["spec"]["labels"] is live["spec"]["labels"]
    assert result["spec"]["parts"][0] is live["spec"]["parts"][0]


def test_a_configuration_without_changes_returns_the_live_object() -> None:
    live = {"spec": {"parts": [{"name": "x", "tags": ["t", "u"]}], "labels": {"a": "1"}}}
    assert merge(WIDGET, live, {"spec": {"parts": [{"name": "x", "tags": ["u"]}], "labels": {"a": "1"}}}) is live


def test_a_configuration_sets_leaves_items_and_entries_but_no_named_fields() -> None:
    config = {
        "spec": {
            "text": "t",
            "parts": [{"name": "x", "deep": {}}],
            "labels": {"a": "1"},
            "objects": {"k": {"x": "1"}, "l": {}},
            "tags": [],
            "whole": {"a": "1"},
            "nested": {"b": {"c": "2"}},
            "free": {"k": {"v": None}},
        }
    }
    assert sorted(render(path) for path in members(to_field_set(WIDGET, config))) == [
        ".spec.free.k",
        ".spec.free.k.v",
        ".spec.labels.a",
        ".spec.nested.b.c",
        ".spec.objects.k",
        ".spec.objects.k.x",
        ".spec.objects.l",
        '.spec.parts[name="x"]',
        '.spec.parts[name="x"].deep',
        '.spec.parts[name="x"].name',
        ".spec.text",
        ".spec.whole",
    ]


def test_the_owner_of_a_child_owns_the_named_field() -> None:
    fields = field_set(("f:spec", "f:labels", "f:a"), ("f:spec", "f:objects", "f:k", "f:x"))
    assert sorted(render(path) for path in members(ensure_named_members(WIDGET, fields))) == [
        ".spec",
        ".spec.labels",
        ".spec.labels.a",
        ".spec.objects",
        ".spec.objects.k.x",
    ]


def test_removing_the_last_part_leaves_null() -> None:
    value = {"spec": {"labels": {"a": "1"}, "parts": [{"name": "x"}, {"name": "y", "value": "1"}]}}
    doomed = field_set(
        ("f:spec", "f:labels", "f:a"),
        ("f:spec", "f:parts", 'k:{"name":"x"}'),
        ("f:spec", "f:parts", 'k:{"name":"y"}', "f:value"),
    )
    assert remove_items(WIDGET, value, doomed) == {"spec": {"labels": None, "parts": [{"name": "y"}]}}
