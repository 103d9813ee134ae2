"""Templates are filled from the object, the clock and the world's functions."""

from datetime import UTC, datetime

import pytest

from nodeyard.sim.templates import Scope, TemplateError, compile_template


class Thing:
    def __init__(self, obj, node=None):
        self.object = obj
        self.node = node

    def is_marked(self, mark):
        return mark == "failed"

    def count(self, name):
        return {"machines": 3}[name]

    def related(self, relation):
        return self.node


POD = Thing(
    {"metadata": {"name": "p"}, "spec": {"replicas": 2, "containers": [{"name": "a"}, {"name": "b"}]}},
    Thing({"metadata": {"name": "n1"}}),
)


def fill(template, **names):
    functions = {"double": lambda of: of * 2}
    return compile_template(template)(Scope(POD, datetime(2026, 5, 1, 12, tzinfo=UTC), functions, names))


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("plain", "plain"),
        (7, 7),
        (None, None),
        ("${object.metadata.name}", "p"),
        ("${object.spec.replicas}", 2),
        ("pod ${object.metadata.name} of ${object.spec.replicas}", "pod p of 2"),
        ("${object.status.gone}", None),
        ("<${object.status.gone}>", "<>"),
        ("${object.status.gone|object.metadata.name}", "p"),
        ("${object.status.gone | now}", "2026-05-01T12:00:00Z"),
        ("${now_micro}", "2026-05-01T12:00:00.000000Z"),
        ("${related.node-of-pod.metadata.name}", "n1"),
        ("${count.machines}", 3),
        ({"a": ["${object.metadata.name}", {"b": 1}]}, {"a": ["p", {"b": 1}]}),
        ({"$each": "object.spec.containers", "as": "c", "value": {"n": "${c.name}"}}, [{"n": "a"}, {"n": "b"}]),
        ({"$each": "object.spec.gone", "value": 1}, []),
        ({"a": {"$if": [{"path": "spec.replicas", "is": 2}], "then": "yes"}}, {"a": "yes"}),
        ({"a": {"$if": [{"path": "spec.replicas", "is": 3}], "then": "yes"}}, {}),
        ([{"$if": [{"path": "spec.replicas", "is": 3}], "then": "yes"}], []),
        ({"$if": [{"unmarked": "failed"}], "then": 1, "else": 2}, 2),
        ({"$call": "double", "of": "${object.spec.replicas}"}, 4),
    ],
    ids=str,
)
def test_filling(template, filled):
    assert fill(template) == filled


def test_names_given_by_the_action_are_roots():
    assert fill("${object.metadata.name}-${suffix}", suffix="x7k2p") == "p-x7k2p"


def test_inner_loops_see_outer_names():
    template = {
        "$each": "object.spec.containers",
        "as": "outer",
        "value": {"$each": "object.spec.containers", "as": "inner", "value": "${outer.name}${inner.name}"},
    }
    assert fill(template) == [["aa", "ab"], ["ba", "bb"]]


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("${nonsense.x}", '"nonsense" is not one of'),
        ("${a..b}", "is not a path"),
        ({"$call": "treble", "of": 1}, 'no function "treble"; known: double'),
        ({"$each": "object", "valu": 1}, "cannot be combined with valu"),
    ],
    ids=str,
)
def test_invalid_templates_are_refused(template, words):
    with pytest.raises(TemplateError, match=words):
        fill(template)
