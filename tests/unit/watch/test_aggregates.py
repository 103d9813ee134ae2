"""Aggregates are exact after any number of changes."""

import pytest

from nodeyard.runtime.capability import Aggregate
from nodeyard.watch.indexes import Fold

from .builders import node

SIZE = Aggregate(
    name="size",
    kind="Node",
    empty=float,
    group=lambda obj: [obj.metadata.labels["zone"]],
    add=lambda total, obj: total + float(obj.metadata.labels["size"]),
    remove=lambda total, obj: total - float(obj.metadata.labels["size"]),
)


def move(fold, old, new):
    fold.commit(fold.stage(("", (old or new).metadata.name), old, new))


def test_objects_are_added_moved_and_removed():
    fold = Fold(SIZE)
    one, two = node("a", 1, zone="x", size="2"), node("a", 2, zone="y", size="3")
    move(fold, None, one)
    move(fold, None, node("b", 1, zone="x", size="5"))
    assert fold.value("x") == 7
    move(fold, one, two)
    assert fold.values() == {"x": 5, "y": 3}


def test_a_change_within_a_group_is_one_removed_and_one_added():
    fold = Fold(SIZE)
    one = node("a", 1, zone="x", size="2")
    move(fold, None, one)
    move(fold, one, node("a", 2, zone="x", size="9"))
    assert fold.value("x") == 9


def test_a_group_without_objects_begins_again_from_empty():
    fold = Fold(SIZE)
    objects = [node(name, 1, zone="x", size=size) for name, size in (("a", "0.1"), ("b", "0.2"), ("c", "0.3"))]
    for obj in objects:
        move(fold, None, obj)
    for obj in objects:
        move(fold, obj, None)
    assert fold.value("x") == 0.0
    assert fold.values() == {}


def test_a_fold_that_fails_changes_nothing():
    fold = Fold(SIZE)
    one = node("a", 1, zone="x", size="2")
    move(fold, None, one)
    with pytest.raises(ValueError, match="many"):
        fold.stage(("", "a"), one, node("a", 2, zone="x", size="many"))
    assert fold.value("x") == 2
