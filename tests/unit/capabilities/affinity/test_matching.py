"""The nodes of a class."""

from nodeyard.capabilities.affinity.planning.containment import NO_ZONE, compile_class, count_by_zone, is_in_class
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import ObjectMeta

from ....builders.node_terms import expression, named, selector


def node(name, zone=None, **labels):
    return ObjectMeta(name=name, labels={**({ZONE: zone} if zone else {}), **labels})


NODES = [node("a", "dc2", gpu="true"), node("b", "dc1", gpu="true"), node("c", "dc1"), node("d", gpu="true"), node("e")]


def test_a_node_matches_the_selector_of_the_class():
    gpu = compile_class({"gpu": "true"}, None)
    assert [each.name for each in NODES if is_in_class(gpu, each)] == ["a", "b", "d"]


def test_a_node_is_in_one_term_and_in_the_selector():
    placement = compile_class(
        {"gpu": "true"}, selector([expression(ZONE, "In", "dc1")], named("In", "d"), named("In", "e"))
    )
    assert [each.name for each in NODES if is_in_class(placement, each)] == ["b", "d"]


def test_nodes_are_counted_by_zone():
    assert list(count_by_zone(compile_class({"gpu": "true"}, None), NODES).items()) == [
        (NO_ZONE, 1),
        ("dc1", 1),
        ("dc2", 1),
    ]
    assert count_by_zone(compile_class({}, None), NODES) == {NO_ZONE: 2, "dc1": 2, "dc2": 1}
    assert count_by_zone(compile_class({"gpu": "none"}, None), NODES) == {}
