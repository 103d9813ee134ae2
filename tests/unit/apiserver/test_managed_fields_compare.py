"""Removed, modified and added fields, at the granularity of ownership."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.managed_fields.compare import compare, whole
from nodeyard.apiserver.managed_fields.fieldset import members
from nodeyard.apiserver.managed_fields.paths import render
from nodeyard.apiserver.managed_fields.type_shape import DEDUCED, ShapeError, shape_of

from ...builders.managed_fields import Widgets

WIDGET = shape_of(Widgets.schema)


def texts(fields: Any) -> list[str]:
    return [render(path) for path in members(fields)]


def changes(old: Any, new: Any) -> tuple[list[str], list[str], list[str]]:
    comparison = compare(WIDGET, {"spec": old}, {"spec": new})
    return texts(comparison.removed), texts(comparison.modified), texts(comparison.added)


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        pytest.param({"text": "a"}, {"text": "b"}, [], [".spec.text"], [], id="scalar"),
        pytest.param({"either": 1}, {"either": "1"}, [], [".spec.either"], [], id="scalar-of-another-type"),
        pytest.param({"any": 1}, {"any": True}, [], [".spec.any"], [], id="number-and-boolean"),
        pytest.param({"any": {"x": 1}}, {"any": {"x": True}}, [], [".spec.any.x"], [], id="the-same-deeper"),
        pytest.param({"any": {"x": 1}}, {"any": {"x": 1.0}}, [], [], [], id="equal-numbers"),
        pytest.param({}, {"nested": {"b": {"c": "x"}}}, [], [], [".nested", ".nested.b", ".nested.b.c"], id="struct"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"b": "1"}}, [".labels.a"], [], [".labels.b"], id="map"),
        pytest.param({"labels": {"a": "1"}}, {}, [".labels", ".labels.a"], [], [], id="map-removed"),
        pytest.param({"labels": {}}, {"labels": {"a": "1"}}, [], [], [".labels.a"], id="empty-map-filled"),
        pytest.param({"labels": None}, {"labels": {}}, [], [".spec.labels"], [], id="null-and-empty"),
        pytest.param({"whole": {"a": "x"}}, {"whole": {"b": {}}}, [], [".spec.whole"], [], id="atomic-map"),
        pytest.param({"steps": [{"run": "a"}]}, {"steps": []}, [], [".spec.steps"], [], id="atomic-list"),
        pytest.param({"tags": ["a", "b"]}, {"tags": ["c", "b"]}, ['.tags[="a"]'], [], ['.tags[="c"]'], id="set"),
        pytest.param({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, [], [], [], id="order-is-nobody's"),
        pytest.param(
            {"parts": [{"name": "x", "value": "1"}]},
            {"parts": [{"name": "x", "value": "2", "tags": ["t"]}, {"name": "y"}]},
            [],
            ['.spec.parts[name="x"].value'],
            ['.parts[name="y"]', '.parts[name="x"].tags', '.parts[name="x"].tags[="t"]', '.parts[name="y"].name'],
            id="list-map",
        ),
        pytest.param(
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 80, "protocol": "TCP"}]},
            [],
            [],
            ['.ports[port=80,protocol="TCP"].protocol'],
            id="a-key-left-out-is-its-default",
        ),
        pytest.param(
            {"any": {"x": {"y": 1}}}, {"any": {"x": "z"}}, [".any.x.y"], [".spec.any.x"], [], id="map-turned-scalar"
        ),
        pytest.param(
            {"any": {"x": "z"}}, {"any": {"x": {"y": 1}}}, [], [".spec.any.x"], [".any.x.y"], id="scalar-turned-map"
        ),
        pytest.param(
            {"free": {"k": [1]}}, {"free": {"k": [2]}}, [], [".spec.free.k"], [], id="unknown-lists-are-atomic"
        ),
    ],
)
def test_values_are_compared_by_their_type(
    old: Any, new: Any, removed: list[str], modified: list[str], added: list[str]
) -> None:
    def within(paths: list[str]) -> list[str]:
        return sorted(path if path.startswith(".spec") else f".spec{path}" for path in paths)

    actual = tuple(sorted(paths) for paths in changes(old, new))
    assert actual == (within(removed), within(modified), within(added))


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        pytest.param(["a"], ["a", "a"], ['[="a"]'], [], ['[="a"]'], id="one-becomes-two"),
        pytest.param(["a", "a"], ["a"], ['[="a"]'], [], ['[="a"]'], id="two-become-one"),
        pytest.param(["a", "a"], ["b"], ['[="a"]'], [], ['[="b"]'], id="two-go"),
        pytest.param(["a", "a"], ["a", "a", "a"], [], ['[="a"]'], [], id="two-become-three"),
        pytest.param(["a", "a"], ["a", "a"], [], [], [], id="two-stay"),
    ],
)
def test_duplicates_are_one_leaf(old: Any, new: Any, removed: list[str], modified: list[str], added: list[str]) -> None:
    expected = tuple([f".spec.tags{path}" for path in paths] for paths in (removed, modified, added))
    assert changes({"tags": old}, {"tags": new}) == expected


def test_the_same_object_is_not_looked_into() -> None:
    class Untouchable(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("there was no need to look")

    shared = Untouchable(text="a")
    comparison = compare(WIDGET, {"spec": shared, "status": {"phase": "a"}}, {"spec": shared, "status": {"phase": "b"}})
    assert texts(comparison.modified) == [".status.phase"]


def test_fields_below_reset_ones_do_not_count() -> None:
    comparison = compare(WIDGET, {}, {"status": {"phase": "x"}, "spec": {"text": "t"}})
    assert texts(comparison.excluding({"f:status": {}}).gained) == [".spec", ".spec.text"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([None], "associative list with keys may not have a null element"),
        (["x"], "associative list with keys may not have non-map elements"),
        (
            [{"value": "x"}],
            'associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
    ],
)
def test_list_items_with_equal_keys_are_an_error(parts: Any, message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        changes({}, {"parts": parts})
    assert str(caught.value) == message


def test_everything_in_a_value_without_a_type_is_named() -> None:
    assert texts({"f:x": whole(DEDUCED, {"a": [1, {}], "b": {"c": None, "d": {}}})}) == [
        ".x",
        ".x.a",
        ".x.b",
        ".x.b.c",
        ".x.b.d",
    ]
