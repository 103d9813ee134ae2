"""The `where` of a stage."""

import pytest

from nodeyard.sim.conditions import ConditionError, compile_condition, compile_conditions, references


class Thing:
    """Build a subject."""

    def __init__(self, obj=None, marks=(), counts=None, others=None):
        self.object = obj or {}
        self.marks = marks
        self.counts = counts or {}
        self.others = others or {}

    def is_marked(self, mark):
        return mark in self.marks

    def count(self, name):
        return self.counts[name]

    def related(self, relation):
        return self.others.get(relation)


POD = Thing({"status": {"phase": "Pending", "replicas": 2}, "spec": {"replicas": 3, "gates": ["a", "b"]}})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"path": "status.phase", "is": "Pending"}, True),
        ({"path": "status.phase", "is": "Running"}, False),
        ({"path": "status.phase", "not": "Running"}, True),
        ({"path": "status.gone", "not": "Running"}, True),
        ({"path": "status.phase", "in": ["Pending", "Running"]}, True),
        ({"path": "status.gone", "exists": False}, True),
        ({"path": "status.phase", "exists": True}, True),
        ({"path": "spec.replicas", "above": 2}, True),
        ({"path": "spec.replicas", "below": 3}, False),
        ({"path": "spec.gone", "below": 1}, True),
        ({"path": "spec.gates", "contains": "b"}, True),
        ({"path": "spec.gone", "contains": "b"}, False),
        ({"path": "spec.gone", "default": 1, "is": 1}, True),
        ({"path": "spec.replicas", "default": 1, "is": 3}, True),
        ({"path": "status.replicas", "not": {"path": "spec.replicas"}}, True),
        ({"path": "status.replicas", "below": {"path": "spec.replicas"}}, True),
        ({"any": [{"path": "a", "is": 1}, {"path": "spec.replicas", "is": 3}]}, True),
        ({"all": [{"path": "a", "is": 1}, {"path": "spec.replicas", "is": 3}]}, False),
        ({"none": [{"path": "a", "is": 1}]}, True),
    ],
    ids=str,
)
def test_comparisons(condition, holds):
    assert compile_condition(condition)(POD) is holds


def test_marks_are_asked_for():
    failed, alive = compile_condition({"marked": "failed"}), compile_condition({"unmarked": "failed"})
    assert failed(Thing(marks=["failed"]))
    assert not failed(Thing())
    assert alive(Thing())


def test_counts_are_operands_on_both_sides():
    thing = Thing({"spec": {"replicas": 2}}, counts={"machines": 2})
    assert compile_condition({"count": "machines", "is": 2})(thing)
    assert compile_condition({"path": "spec.replicas", "is": {"count": "machines"}})(thing)


def test_a_related_object_must_be_there_and_fulfil_its_own_conditions():
    condition = compile_condition({"related": "node", "where": [{"unmarked": "failed"}]})
    assert condition(Thing(others={"node": Thing()}))
    assert not condition(Thing(others={"node": Thing(marks=["failed"])}))
    assert not condition(Thing())


def test_several_conditions_must_all_hold_and_none_always_do():
    both = compile_conditions([{"path": "spec.replicas", "is": 3}, {"path": "status.phase", "is": "Pending"}])
    assert both(POD)
    assert compile_conditions([])(POD)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"path": "a"}, "one of is, not"),
        ({"path": "a", "is": 1, "not": 2}, "one of is, not"),
        ({"path": "a", "like": 1}, '"like" is none of'),
        ({"is": 1}, "begins with path, count"),
        ({"path": "a..b", "is": 1}, "is not a path"),
        ({"related": "node", "were": []}, "related cannot be combined with were"),
        ({"marked": "x", "is": True}, "marked cannot be combined with is"),
        ({"path": "a", "is": {"path": "b", "not": 1}}, "unknown: not"),
        ("text", "is a mapping"),
    ],
    ids=str,
)
def test_a_condition_that_means_nothing_is_refused(condition, words):
    with pytest.raises(ConditionError, match=words):
        compile_condition(condition)


def test_conditions_name_their_relations_and_counts():
    relations, counts = references(
        [{"any": [{"related": "node", "where": [{"count": "pods", "is": 0}]}]}, {"path": "a", "is": {"count": "sets"}}]
    )
    assert relations == {"node"}
    assert counts == {"pods", "sets"}
