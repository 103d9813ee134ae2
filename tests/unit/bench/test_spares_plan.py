"""The fleets of the spares-plan benchmark have the documented properties."""

from __future__ import annotations

import pytest
from bench.spares_plan import METRICS, Size, apply_plan, contestant, fleet, templates

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_spare
from nodeyard.process.clock import EPOCH

SIZE = Size(400, 20)


@pytest.fixture(scope="module")
def cold() -> SparesSnapshot:
    return SparesSnapshot(fleet(SIZE.nodes), templates(SIZE, 0.9))


def test_cold_every_node_is_spare_and_nine_of_ten_are_claimed(cold):
    planned = plan(cold, EPOCH)

    assert all(map(is_spare, cold.nodes))
    assert sum(action.reason == Reason.CLAIMED for action in planned.plan.actions) == 360


def test_converged_the_plan_is_applied_and_nothing_is_left_to_do(cold):
    converged = apply_plan(cold, plan(cold, EPOCH))

    assert sum(names.TEMPLATE_LABEL in node.metadata.labels for node in converged.nodes) == 360
    assert plan(converged, EPOCH).plan.actions == ()


def test_scarce_every_priority_wants_nodes():
    scarce = templates(Size(400, 400), 2.0)

    assert sum(template.spec.nodes for template in scarce) == 800
    by_shape = {}
    for template in scarce:
        by_shape.setdefault(str(template.spec.selector), set()).add(template.spec.priority)
    assert all(len(priorities) == 10 for priorities in by_shape.values())


def test_a_contestant_reports_all_three_times():
    numbers = contestant(SIZE).run()

    assert tuple(numbers) == METRICS
    assert all(seconds > 0 for seconds in numbers.values())
