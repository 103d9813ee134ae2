"""Containment compared with brute force over every node that these selectors can distinguish.

The two share no code: the test matches single nodes like the scheduler, the code compares sets of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.capabilities.affinity.planning.containment import Counterexample, Inside, Outside, compile_class, contains
from nodeyard.kube.node_affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, node_matcher

from ..builders.node_terms import expression, selector, term

KEYS = ("a", "b")
# One value that no selector below names, of every kind that they can distinguish.
NAMED = ("x", "y", "1", "01", "3")
BOUNDS = ("0", "1", "01", "2", "9223372036854775806", "9223372036854775807", "many")
VALUES = (None, "q", "x", "y", "0", "1", "01", "001", "2", "3", "03", "9223372036854775807")
NODES = ("n1", "n2")

keys = st.sampled_from(KEYS)
values = st.lists(st.sampled_from(NAMED), min_size=1, max_size=3, unique=True)
expressions = st.one_of(
    st.builds(
        lambda key, operator, some: expression(key, operator, *some), keys, st.sampled_from(["In", "NotIn"]), values
    ),
    st.builds(expression, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(expression, keys, st.sampled_from(["Gt", "Lt"]), st.sampled_from(BOUNDS)),
)
fields = st.builds(expression, st.just("metadata.name"), st.sampled_from(["In", "NotIn"]), st.just("n1"))
terms = st.builds(term, st.lists(expressions, max_size=3), st.lists(fields, max_size=1))
selectors = st.none() | st.lists(terms, max_size=4).map(lambda several: selector(*several))

number_expressions = st.one_of(
    st.builds(lambda operator, some: expression("a", operator, *some), st.sampled_from(["In", "NotIn"]), values),
    st.builds(expression, st.just("a"), st.sampled_from(["Gt", "Lt"]), st.sampled_from(["0", "1", "2"])),
)
number_terms = st.lists(number_expressions, min_size=1, max_size=2)
number_selectors = st.lists(number_terms, min_size=1, max_size=3).map(lambda several: selector(*several))
node_selectors = st.dictionaries(keys, st.sampled_from(NAMED), max_size=1)


def nodes(fixed: Mapping[str, str | None], name: str | None) -> Iterator[tuple[dict[str, str], str]]:
    """Return all nodes, or those that match."""
    sorts = [(fixed[key],) if key in fixed else VALUES for key in KEYS]
    for several in product(*sorts):
        labels = {key: value for key, value in zip(KEYS, several, strict=True) if value is not None}
        for one in NODES if name is None else (name,):
            yield labels, one


EVERY_NODE = list(nodes({}, None))


class Side:
    """A pod or a class with all its nodes."""

    def __init__(self, node_selector: dict[str, str], required: NodeSelector | None) -> None:
        self.asks = node_selector, required
        self.compiled = compile_class(*self.asks)
        self.matches = node_matcher(*self.asks)
        self.nodes = {place for place, node in enumerate(EVERY_NODE) if self.matches(*node)}


def is_real(counterexample: Counterexample, pod: Side, placement: Side) -> bool:
    """Assert that the counterexample is a node of the pod and outside the class."""
    such = list(nodes(counterexample.labels, counterexample.node_name))
    return any(pod.matches(*node) for node in such) and not any(placement.matches(*node) for node in such)


def check(pod: Side, placement: Side) -> None:
    containment = contains(placement.compiled, *pod.asks)
    if pod.nodes <= placement.nodes:
        assert containment == Inside(is_vacuous=not pod.nodes)
        return
    assert isinstance(containment, Outside)
    assert is_real(containment.counterexample, pod, placement)
    if containment.missing is not None:
        key, value = containment.missing
        assert placement.asks[0][key] == value != containment.counterexample.labels[key]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.builds(Side, node_selectors, selectors), min_size=4, max_size=5))
def test_a_pod_is_inside_exactly_when_all_its_nodes_are(several: list[Side]) -> None:
    for pod, placement in product(several, repeat=2):
        check(pod, placement)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.builds(Side, st.just({}), number_selectors), min_size=4, max_size=5))
def test_numbers_are_compared_as_numbers_and_named_as_texts(several: list[Side]) -> None:
    for pod, placement in product(several, repeat=2):
        check(pod, placement)


@given(node_selector=node_selectors, required=selectors, more=st.lists(terms, max_size=3), further=expressions)
def test_a_class_contains_itself_and_whatever_is_narrower(
    node_selector: dict[str, str],
    required: NodeSelector | None,
    more: list[NodeSelectorTerm],
    further: NodeSelectorRequirement,
) -> None:
    several = required.node_selector_terms if required else (term([expression("a", "Exists")]),)
    approval_roots = compile_class(node_selector, selector(*several, *more))
    narrower = [term([*one.match_expressions, further], one.match_fields) for one in several if one != term()]
    assert isinstance(contains(approval_roots, node_selector, selector(*several)), Inside)
    assert isinstance(contains(approval_roots, node_selector, selector(*narrower)), Inside)
