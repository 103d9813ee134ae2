"""A short template blocks a lower one only if their selectors compete."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.planning.templates import can_overlap
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import from_object

from ....builders.spares import NOW, described, snapshot, spare, template

COMPUTE: Object = {"matchLabels": {"role": "compute"}}
STORAGE: Object = {"matchLabels": {"role": "storage"}}


def expression(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def reasons(seen: Any, name: str) -> list[str]:
    return [each.reason for each in plan(seen, NOW).plan.blocked if each.object.name == name]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(COMPUTE, STORAGE, False, id="two-values-of-one-label"),
        pytest.param(COMPUTE, {}, True, id="everything-overlaps-with-all"),
        pytest.param(COMPUTE, {"matchLabels": {"size": "big"}}, True, id="different-labels"),
        pytest.param(COMPUTE, expression("role", "NotIn", "compute"), False, id="value-excluded"),
        pytest.param(COMPUTE, expression("role", "NotIn", "storage"), True, id="other-value-excluded"),
        pytest.param(COMPUTE, expression("role", "DoesNotExist"), False, id="must-be-absent"),
        pytest.param(COMPUTE, expression("role", "Exists"), True, id="must-exist"),
        pytest.param(expression("role", "In", "a", "b"), expression("role", "In", "b", "c"), True, id="common-value"),
        pytest.param(expression("role", "In", "a"), expression("role", "In", "b"), False, id="no-common-value"),
        pytest.param(
            expression("role", "NotIn", "a"), expression("role", "DoesNotExist"), True, id="absence-is-not-in"
        ),
    ],
)
def test_two_selectors_compete_where_one_node_could_match_both(a: Object, b: Object, expected: bool) -> None:
    assert can_overlap(from_object(a), from_object(b)) is expected
    assert can_overlap(from_object(b), from_object(a)) is expected


def test_a_lower_template_waits_for_a_higher_one_even_without_any_node() -> None:
    seen = snapshot([], [template("low", selector=COMPUTE), template("high", selector=COMPUTE, priority=2)])
    assert reasons(seen, "low") == ["HighPriorityNodeTemplateExists"]
    assert reasons(seen, "high") == ["NoSpareNodesFound"]


def test_a_higher_template_with_another_selector_is_not_in_the_way() -> None:
    seen = snapshot([], [template("low", selector=COMPUTE), template("high", selector=STORAGE, priority=2)])
    assert reasons(seen, "low") == ["NoSpareNodesFound"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"dryRun": True}, id="dry-run"),
        pytest.param({"paused": True}, id="paused"),
        pytest.param({"selector": expression("a", "Foo")}, id="broken"),
        pytest.param({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, id="deleting"),
    ],
)
def test_an_idle_higher_template_does_not_reserve_spares(given: dict[str, Any]) -> None:
    seen = snapshot([spare("a")], [template("low", 2), template("high", 9, priority=2, **given)])
    assert reasons(seen, "low") == ["NoSpareNodesFound"]


def test_a_lower_template_still_gets_what_the_higher_one_cannot_use() -> None:
    nodes = [spare("a", labels={"role": "compute"}), spare("b", labels={"role": "storage"})]
    seen = snapshot(nodes, [template("low", 2), template("high", 2, selector=COMPUTE, priority=2)])
    taken = {action.object.name: action.facts.template for action in plan(seen, NOW).plan.actions}
    assert taken == {"a": "high", "b": "low"}


def test_a_node_that_is_not_ready_yet_is_held_for_the_higher_template() -> None:
    high = template("high", priority=2, eligibility={"requireReady": True})
    seen = snapshot([spare("a", is_ready=False)], [template("low"), high])
    assert not plan(seen, NOW).plan.actions
    assert reasons(seen, "low") == ["HighPriorityNodeTemplateExists", "ReservedForHigherPriority"]


def test_equals_do_not_hold_nodes_from_each_other() -> None:
    picky = template("a-picky", eligibility={"requireReady": True})
    seen = snapshot([spare("a", is_ready=False)], [picky, template("b-easy")])
    assert [action.facts.template for action in plan(seen, NOW).plan.actions] == ["b-easy"]
    assert reasons(seen, "a-picky")[0] == "NoSpareNodesFound"


PICKY = {"requireReady": True}


def test_no_more_spares_are_held_than_the_higher_template_misses() -> None:
    nodes = [spare(name, is_ready=False) for name in "abc"]
    seen = snapshot(nodes, [template("low", 3), template("high", 1, priority=2, eligibility=PICKY)])
    taken = {action.object.name: action.facts.template for action in plan(seen, NOW).plan.actions}
    assert taken == {"b": "low", "c": "low"}
    held = next(each for each in plan(seen, NOW).plan.blocked if each.reason == "ReservedForHigherPriority")
    assert held.facts.text() == "Reserved for high, which has a higher priority: 1 node (a)"


def test_those_that_are_held_are_spread_like_those_that_are_claimed() -> None:
    nodes = [spare(f"{zone}{number}", zone=zone, is_ready=False) for zone in "xy" for number in "12"]
    seen = snapshot(nodes, [template("low", 4), template("high", 2, priority=2, eligibility=PICKY)])
    assert {action.object.name for action in plan(seen, NOW).plan.actions} == {"x2", "y2"}


def test_spares_that_the_higher_template_could_not_keep_are_not_held_for_it() -> None:
    defeating = {"selector": {"matchLabels": {"tier": "db"}}, "template": described(labels={"tier": "web"})}
    high = template("high", 1, priority=2, eligibility=PICKY, **defeating)
    seen = snapshot([spare("a", is_ready=False, labels={"tier": "db"})], [template("low"), high])
    assert [action.facts.template for action in plan(seen, NOW).plan.actions] == ["low"]


def test_a_cordoned_spare_is_not_ready() -> None:
    seen = snapshot([spare("a", is_cordoned=True)], [template("web", eligibility=PICKY)])
    assert not plan(seen, NOW).plan.actions
    assert reasons(seen, "web") == ["NoSpareNodesFound", "Unschedulable"]
