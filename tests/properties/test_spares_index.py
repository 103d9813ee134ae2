"""The spare index finds exactly what a scan of all nodes would find."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.spares.planning.partition import Picker, SpareIndex
from nodeyard.capabilities.spares.planning.templates import Waiting, can_overlap, resolve
from nodeyard.kube.names import ZONE
from nodeyard.kube.selectors import from_object

from ..builders.spares import spare, template

KEYS = ("role", "size", "absent")
VALUES = ("a", "b", "c")

expressions = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(KEYS),
        st.sampled_from(("In", "NotIn")),
        st.lists(st.sampled_from(VALUES), min_size=1, unique=True),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from(KEYS),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
selectors = st.builds(
    lambda labels, found: {"matchLabels": labels, "matchExpressions": found},
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1),
    st.lists(expressions, max_size=2),
)
labels = st.dictionaries(st.sampled_from(KEYS[:2]), st.sampled_from(VALUES))


@given(st.lists(labels, max_size=12), st.lists(selectors, min_size=1, max_size=4))
def test_a_selector_finds_in_the_index_exactly_what_it_matches(fleet: list[dict[str, str]], asked: list[Any]) -> None:
    nodes = [spare(f"n{number:02}", labels=each) for number, each in enumerate(fleet)]
    compiled = [from_object(each) for each in asked]
    index = SpareIndex(nodes, {}, compiled)
    for selector in compiled:
        found = sorted(each.name for each in index.matching(selector))
        assert found == [each.metadata.name for each in nodes if selector.matches(each.metadata.labels)]


@given(st.lists(st.tuples(labels, st.sampled_from(("", "z1", "z2"))), max_size=12), selectors)
def test_picking_goes_by_zone_and_name_across_label_groups(fleet: list[Any], asked: Any) -> None:
    nodes = [spare(f"n{number:02}", labels=each, zone=zone) for number, (each, zone) in enumerate(fleet)]
    [wanted] = resolve([template("web", selector=asked)])
    index = SpareIndex(nodes, {}, [wanted.selector])
    picker = Picker(index.queue(wanted), {})
    picked = []
    while (each := picker.next()) is not None:
        picked.append(each)
    assert {each.name for each in picked} == {each.name for each in index.matching(wanted.selector)}
    for zone in ("", "z1", "z2"):
        of_zone = [each.name for each in picked if each.node.metadata.labels.get(ZONE, "") == zone]
        assert of_zone == sorted(of_zone)


@given(st.lists(selectors, max_size=6), selectors)
def test_the_competitor_is_the_highest_that_overlaps(higher: list[Any], asked: Any) -> None:
    waiting_for = resolve(
        template(f"t{number}", selector=each, priority=10 - number) for number, each in enumerate(higher)
    )
    [low] = resolve([template("low", selector=asked)])
    waiting = Waiting([*waiting_for, low])
    for each in waiting_for:
        waiting.add(each)
    expected = next((each.name for each in waiting_for if can_overlap(each.selector, low.selector)), None)
    found = waiting.competitor(low)
    assert (found.name if found else None) == expected
