"""Metrics of the reconcile loop: sums over all keys, and the time from an event to its write."""

import pytest
from tests.builders.plans import action, message

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.metrics import THROTTLED_SECONDS, EventLatency, LoopMetrics
from nodeyard.runtime.reconcile.result import Ending, ReconcileResult

REF = ObjectRef(api_version="v1", kind="Node", name="n")


def plan(key, actions=0, blocked=()):
    made = tuple(action(str(number), object=REF) for number in range(actions))
    return Plan(
        capability="c",
        key=key,
        actions=made,
        blocked=tuple(Blocked(object=REF, reason=reason, facts=message(reason)) for reason in blocked),
    )


class Measured:
    def __init__(self):
        self.metrics = Metrics()
        self.loop = LoopMetrics(self.metrics).of("c")

    def __getitem__(self, name):
        found = {}
        for family in self.metrics.registry.collect():
            for sample in family.samples:
                if sample.name == name:
                    labels = {key: value for key, value in sample.labels.items() if key != "capability"}
                    found[tuple(labels.values())] = sample.value
        return found


def test_actions_and_refusals_are_those_of_the_last_plan_of_each_key():
    measured = Measured()
    measured.loop.record_plan(plan("a", 3, ["X", "X", "Y"]), is_held=True)
    measured.loop.record_plan(plan("b", 2), is_held=False)
    assert measured["nodeyard_plan_actions"] == {(): 5}
    assert measured["nodeyard_plan_blocked"] == {("X",): 2, ("Y",): 1}
    assert measured["nodeyard_plans_held"] == {(): 1}
    measured.loop.record_plan(plan("a", 1, ["Y"]), is_held=False)
    assert measured["nodeyard_plan_actions"] == {(): 3}
    assert measured["nodeyard_plan_blocked"] == {("X",): 0, ("Y",): 1}
    assert measured["nodeyard_plans_held"] == {(): 0}


def test_a_key_that_is_gone_counts_no_more_and_one_never_seen_neither():
    measured = Measured()
    measured.loop.record_plan(plan("a", 3, ["X"]), is_held=True)
    measured.loop.forget("a")
    measured.loop.forget("never")
    assert measured["nodeyard_plan_actions"] == {(): 0}
    assert measured["nodeyard_plans_held"] == {(): 0}


def test_actions_are_counted_by_what_became_of_them():
    measured = Measured()
    results = [
        ActionResult(action=action, result=result)
        for action, result in zip(plan("a", 3).actions, (Result.DONE, Result.DONE, Result.DENIED), strict=True)
    ]
    measured.loop.record_outcome("a", Outcome(results=tuple(results)))
    assert measured["nodeyard_actions_total"] == {("Patch", "Done"): 2, ("Patch", "Denied"): 1}


def test_why_nothing_is_written_is_one_reason_at_a_time():
    measured = Measured()
    measured.loop.set_observing("--observe")
    measured.loop.set_observing("peer")
    assert measured["nodeyard_observing"] == {("--observe",): 0, ("peer",): 1}
    measured.loop.set_observing("")
    assert measured["nodeyard_observing"] == {("--observe",): 0, ("peer",): 0}


SETTLED = ReconcileResult(Ending.SETTLED)


@pytest.fixture
def latency(clock):
    return EventLatency(clock)


async def test_it_counts_from_the_first_event_of_those_that_a_pass_serves(latency, clock):
    latency.mark("a")
    await clock.advance(1)
    latency.mark("a")
    await clock.advance(2)
    latency.begin("a")
    assert latency.waited("a") == 3
    await clock.advance(0.5)
    assert latency.waited("a") == 3.5


def test_a_pass_that_no_event_called_for_has_not_waited(latency):
    latency.begin("a")
    assert latency.waited("a") is None


async def test_a_written_change_no_longer_waits(latency, clock):
    latency.mark("a")
    latency.begin("a")
    latency.end("a", SETTLED)
    await clock.advance(5)
    latency.begin("a")
    assert latency.waited("a") is None


async def test_events_during_a_pass_count_for_the_next(latency, clock):
    latency.mark("a")
    latency.begin("a")
    await clock.advance(1)
    latency.mark("a")
    await clock.advance(1)
    assert latency.waited("a") == 2
    latency.end("a", SETTLED)
    latency.begin("a")
    assert latency.waited("a") == 1


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.CONFLICT, Ending.DENIED, Ending.HELD, Ending.NOT_SYNCED])
async def test_unhandled_events_keep_their_first_time(latency, clock, ending):
    latency.mark("a")
    latency.begin("a")
    await clock.advance(1)
    latency.mark("a")
    latency.end("a", ReconcileResult(ending))
    await clock.advance(1)
    latency.begin("a")
    assert latency.waited("a") == 2


async def test_a_briefly_held_write_keeps_waiting(latency, clock):
    latency.mark("a")
    latency.begin("a")
    latency.end("a", ReconcileResult(Ending.SETTLED, requeue_after=THROTTLED_SECONDS))
    await clock.advance(1)
    latency.begin("a")
    assert latency.waited("a") == 1


async def test_a_far_wake_up_is_no_latency(latency, clock):
    latency.mark("a")
    latency.begin("a")
    latency.end("a", ReconcileResult(Ending.SETTLED, requeue_after=60.0))
    await clock.advance(60)
    latency.begin("a")
    assert latency.waited("a") is None


@pytest.mark.parametrize("ending", [Ending.GONE, Ending.NOT_LEADING, Ending.PAUSED, Ending.OBSERVED])
def test_a_change_without_writes_does_not_wait(latency, ending):
    latency.mark("a")
    latency.begin("a")
    latency.end("a", ReconcileResult(ending, requeue_after=0.0))
    latency.begin("a")
    assert latency.waited("a") is None


async def test_a_cancelled_pass_leaves_its_start_time_to_the_next(latency, clock):
    latency.mark("a")
    latency.begin("a")
    await clock.advance(3)
    latency.mark("a")
    latency.begin("a")
    assert latency.waited("a") == 3


def test_keys_wait_each_for_itself(latency):
    latency.mark("a")
    latency.begin("b")
    assert latency.waited("b") is None
