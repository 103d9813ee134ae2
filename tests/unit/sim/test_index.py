"""References and counts are updated incrementally, and each change returns the objects that it concerns."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.sim.index import Index, Key
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import parse_stages

NODE, POD = Kind("v1", "Node"), Kind("v1", "Pod")
STAGES = parse_stages(
    [
        (
            "b.yaml",
            textwrap.dedent(
                """
                relations:
                  node-of-pod: {of: {apiVersion: v1, kind: Pod}, key: spec.nodeName, to: {apiVersion: v1, kind: Node}}
                counts:
                  pods: {relation: node-of-pod}
                  running: {relation: node-of-pod, where: [{path: status.phase, is: Running}]}
                stages:
                - name: s
                  for: {apiVersion: v1, kind: Pod}
                  where: [{related: node-of-pod}]
                  do: [{delete: {}}]
                """
            ),
        )
    ]
)


@pytest.fixture
def index():
    return Index(STAGES)


def node(name):
    return Key(NODE, "", name), {"metadata": {"name": name}}


def pod(name, node="", phase="Pending"):
    return Key(POD, "ns", name), {"metadata": {"name": name}, "spec": {"nodeName": node}, "status": {"phase": phase}}


def names(entities):
    return sorted(entity.key.name for entity in entities)


def test_a_pod_finds_its_node_and_a_node_its_pods(index):
    index.put(*node("n"))
    index.put(*pod("a", "n"))
    index.put(*pod("b", "n"))
    n, a = index.get(node("n")[0]), index.get(pod("a")[0])
    assert a.related("node-of-pod") is n
    assert names(index.referrers("node-of-pod", n)) == ["a", "b"]
    assert n.count("pods") == 2


def test_the_order_of_arrival_does_not_matter(index):
    index.put(*pod("a", "n"))
    assert names(index.put(*node("n"))) == ["a", "n"]
    assert index.get(node("n")[0]).count("pods") == 1


def test_counts_follow_conditions(index):
    index.put(*node("n"))
    index.put(*pod("a", "n"))
    n = index.get(node("n")[0])
    assert n.count("running") == 0
    assert names(index.put(*pod("a", "n", "Running"))) == ["a", "n"]
    assert n.count("running") == 1
    assert names(index.remove(pod("a")[0])) == ["n"]
    assert (n.count("running"), n.count("pods")) == (0, 0)


def test_an_uncounted_change_marks_no_object(index):
    index.put(*node("n"))
    index.put(*pod("a", "n"))
    key, obj = pod("a", "n")
    assert names(index.put(key, {**obj, "extra": 1})) == ["a"]


def test_moving_concerns_both_ends(index):
    index.put(*node("m"))
    index.put(*node("n"))
    index.put(*pod("a", "m"))
    assert names(index.put(*pod("a", "n"))) == ["a", "m", "n"]


def test_a_changed_node_concerns_the_pods_that_look_up_to_it(index):
    index.put(*node("n"))
    index.put(*pod("a", "n"))
    assert names(index.put(*node("n"))) == ["a", "n"]
    assert names(index.remove(node("n")[0])) == ["a"]


def test_marks_concern_the_same_as_a_change(index):
    index.put(*node("n"))
    index.put(*pod("a", "n"))
    key = node("n")[0]
    assert names(index.mark(key, "failed", is_on=True)) == ["a", "n"]
    assert index.get(key).is_marked("failed")
    assert index.mark(key, "failed", is_on=True) == []
    assert names(index.mark(key, "failed", is_on=False)) == ["a", "n"]


def test_a_mark_may_precede_its_object_and_ends_with_it(index):
    key = node("n")[0]
    assert index.mark(key, "failed", is_on=True) == []
    index.put(*node("n"))
    assert index.get(key).is_marked("failed")
    index.remove(key)
    index.put(*node("n"))
    assert not index.get(key).is_marked("failed")


def test_removing_a_missing_object_marks_nothing(index):
    assert index.remove(pod("a")[0]) == []


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["put", "remove"]),
        st.sampled_from("abcd"),
        st.sampled_from(["", "m", "n"]),
        st.sampled_from(["Pending", "Running"]),
    ),
    max_size=40,
)


@given(CHANGES)
def test_counts_always_equal_a_fresh_count(changes):
    index = Index(STAGES)
    index.put(*node("m"))
    index.put(*node("n"))
    pods = {}
    for what, name, where, phase in changes:
        key, obj = pod(name, where, phase)
        if what == "put":
            index.put(key, obj)
            pods[name] = (where, phase)
        else:
            index.remove(key)
            pods.pop(name, None)
    for name in "mn":
        entity = index.get(node(name)[0])
        assert entity.count("pods") == sum(where == name for where, _ in pods.values())
        assert entity.count("running") == sum(pair == (name, "Running") for pair in pods.values())
        assert len(index.referrers("node-of-pod", entity)) == entity.count("pods")
