"""The diff: readable paths, and an entry for every difference."""

import pytest

from nodeyard.plan.apply_preview import merge_fields
from nodeyard.plan.diff import diff, diff_patch
from nodeyard.plan.model import FieldChange

SPARE = {"key": "node.cybozu.io/spare", "effect": "NoSchedule", "value": "true"}
DEDICATED = {"key": "dedicated", "effect": "NoExecute"}


def node(labels=None, taints=None, **more):
    return {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels or {}},
        "spec": {"taints": taints or []},
        **more,
    }


def lines(changes):
    return [(each.path, each.from_, each.to) for each in changes]


def test_equal_objects_have_no_diff():
    assert diff(node({"a": "1"}, [SPARE]), node({"a": "1"}, [SPARE])) == ()


def test_labels_are_named_by_their_key():
    old, new = node({"gone": "1", "app": "a"}), node({"app": "b", "topology.kubernetes.io/zone": "z1"})
    assert lines(diff(old, new)) == [
        ("metadata.labels[app]", "a", "b"),
        ("metadata.labels[gone]", "1", None),
        ("metadata.labels[topology.kubernetes.io/zone]", None, "z1"),
    ]


def test_taints_are_known_by_key_and_effect():
    changed = {**SPARE, "value": "false"}
    assert lines(diff(node(taints=[SPARE]), node(taints=[changed, DEDICATED]))) == [
        ("spec.taints[dedicated:NoExecute]", None, {}),
        ("spec.taints[node.cybozu.io/spare:NoSchedule].value", "true", "false"),
    ]


def test_a_removed_taint_shows_its_value_and_effect():
    assert lines(diff(node(taints=[SPARE]), node())) == [
        ("spec.taints[node.cybozu.io/spare:NoSchedule]", {"value": "true"}, None)
    ]


def test_conditions_are_known_by_type():
    old = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "True"}]}}
    new = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    assert lines(diff(old, new)) == [
        ("status.conditions[Old]", {"status": "True"}, None),
        ("status.conditions[Ready].status", "True", "False"),
    ]


def test_finalizers_are_added_and_removed_by_name():
    old, new = ({"metadata": {"finalizers": names}} for names in (["a/x"], ["b/y"]))
    assert lines(diff(old, new)) == [
        ("metadata.finalizers[a/x]", "a/x", None),
        ("metadata.finalizers[b/y]", None, "b/y"),
    ]


def test_items_that_all_have_a_name_are_known_by_it():
    old, new = ({"spec": {"containers": [{"name": "app", "image": image}]}} for image in ("a:1", "a:2"))
    assert lines(diff(old, new)) == [("spec.containers[app].image", "a:1", "a:2")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([1, 2], [2, 1]),
        ([{"name": "a"}, {"name": "a"}], [{"name": "a"}]),
        ([{"x": 1}], [{"x": 2}]),
        ([{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}]),
        (["a"], {"a": 1}),
    ],
    ids=["order of numbers", "one name twice", "no names", "order of names", "no list any more"],
)
def test_a_list_without_names_is_one_value(old, new):
    assert lines(diff({"spec": {"args": old}}, {"spec": {"args": new}})) == [("spec.args", old, new)]


def test_a_new_object_is_shown_leaf_by_leaf():
    assert lines(diff(None, {"metadata": {"name": "a"}, "spec": {"nodes": 3, "selector": {}}})) == [
        ("metadata.name", None, "a"),
        ("spec.nodes", None, 3),
        ("spec.selector", None, {}),
    ]


def test_an_object_that_goes_is_shown_leaf_by_leaf():
    assert lines(diff({"spec": {"nodes": 3}}, None)) == [("spec.nodes", 3, None)]


def test_null_and_absent_are_the_same():
    assert diff({"spec": {"a": None}}, {"spec": {}}) == ()


def test_false_and_zero_are_not_the_same():
    assert lines(diff({"a": False}, {"a": 0})) == [("a", False, 0)]


def test_fields_set_by_the_server_are_omitted():
    old = {"metadata": {"resourceVersion": "1", "managedFields": [], "uid": "a", "generation": 1}}
    assert diff(old, {"metadata": {"resourceVersion": "2", "generation": 2}}) == ()


def test_a_merge_patch_is_shown_by_what_it_changes():
    old = node({"a": "1", "b": "2"}, [SPARE])
    patch = {"metadata": {"resourceVersion": "7", "labels": {"a": None, "b": "2"}}, "spec": {"taints": []}}
    assert lines(diff_patch(old, patch)) == [
        ("metadata.labels[a]", "1", None),
        ("spec.taints[node.cybozu.io/spare:NoSchedule]", {"value": "true"}, None),
    ]


def test_a_json_patch_is_shown_the_same_way():
    patch = [{"op": "add", "path": "/metadata/labels/a", "value": "1"}]
    assert diff_patch(node({"b": "2"}), patch) == (FieldChange(path="metadata.labels[a]", to="1"),)


def diff_applied(old, fields):
    return diff(old, fields if old is None else merge_fields(old, fields))


def test_an_apply_shows_only_the_fields_it_sets():
    old = node({"theirs": "1"}, [DEDICATED])
    assert lines(diff_applied(old, node({"ours": "1"}, [SPARE]))) == [
        ("metadata.labels[ours]", None, "1"),
        ("spec.taints[node.cybozu.io/spare:NoSchedule]", None, {"value": "true"}),
    ]
    assert lines(diff_applied(None, {"data": {"a": "1"}})) == [("data[a]", None, "1")]


def test_an_apply_of_existing_fields_changes_nothing():
    assert diff_applied(node({"a": "1"}, [SPARE, DEDICATED]), node({"a": "1"}, [DEDICATED])) == ()
