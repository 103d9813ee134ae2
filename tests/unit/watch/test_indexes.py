"""Indexes after every change."""

from nodeyard.watch.indexes import Index

from .builders import node


def zones(obj):
    return obj.metadata.labels.get("zones", "").split("_") if obj.metadata.labels else []


def move(index, old, new):
    index.commit(index.stage(("", (old or new).metadata.name), old, new))


def names(index, value):
    return [obj.metadata.name for obj in index.find(value)]


def test_an_object_is_indexed_under_each_of_its_values():
    index = Index(zones)
    move(index, None, node("a", 1, zones="x_y"))
    assert (names(index, "x"), names(index, "y"), names(index, "z")) == (["a"], ["a"], [])


def test_a_changed_object_leaves_old_values_and_is_replaced_under_kept_ones():
    index = Index(zones)
    one, two = node("a", 1, zones="x_y"), node("a", 2, zones="y_z")
    move(index, None, one)
    move(index, one, two)
    assert (names(index, "x"), names(index, "z")) == ([], ["a"])
    assert index.find("y") == (two,)


def test_a_value_without_objects_is_forgotten():
    index = Index(zones)
    one = node("a", 1, zones="x")
    move(index, None, one)
    move(index, one, None)
    assert list(index.values()) == []


def test_results_are_sorted_once_by_name():
    index = Index(zones)
    for name in ("b", "c", "a"):
        move(index, None, node(name, 1, zones="x"))
    assert names(index, "x") == ["a", "b", "c"]
    assert index.find("x") is index.find("x")


def test_it_counts_what_it_would_find():
    index = Index(zones)
    one = node("a", 1, zones="x_y")
    move(index, None, one)
    move(index, None, node("b", 2, zones="x"))
    assert (index.count("x"), index.count("y"), index.count("z")) == (2, 1, 0)
    move(index, one, None)
    assert (index.count("x"), index.count("y")) == (1, 0)


def test_a_value_named_twice_counts_once():
    index = Index(lambda _obj: ["x", "x"])
    move(index, None, node("a", 1))
    move(index, node("a", 1), None)
    assert index.find("x") == ()
