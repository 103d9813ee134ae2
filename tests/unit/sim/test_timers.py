"""Timers fire in the order of their time, unless cancelled."""

import pytest

from nodeyard.sim.index import Index, Key
from nodeyard.sim.stage_set import parse_stages
from nodeyard.sim.timers import State, Timers

STAGES = parse_stages(
    [
        (
            "b.yaml",
            "stages:\n"
            "- {name: once, for: {apiVersion: v1, kind: Pod}, do: [{delete: {}}]}\n"
            "- {name: beat, for: {apiVersion: v1, kind: Pod}, delay: 10s, repeat: true, do: [{delete: {}}]}\n",
        )
    ]
)
ONCE, BEAT = STAGES.stages


def entity(name):
    index = Index(STAGES)
    key = Key(ONCE.kind, "ns", name)
    index.put(key, {"metadata": {"name": name}})
    return index.get(key)


@pytest.fixture
def timers():
    return Timers()


def test_the_earliest_comes_first_and_only_when_due(timers):
    timers.start(entity("a"), ONCE, 5.0)
    timers.start(entity("b"), ONCE, 3.0)
    assert timers.next_due() == 3.0
    assert timers.take(2.9) is None
    assert timers.take(4.0).entity.key.name == "b"
    assert timers.take(4.0) is None


def test_equal_times_run_in_the_order_of_their_start(timers):
    for name in "abc":
        timers.start(entity(name), ONCE, 1.0)
    assert [timers.take(1.0).entity.key.name for _ in range(3)] == ["a", "b", "c"]


def test_a_cancelled_timer_does_not_fire(timers):
    a = entity("a")
    timers.start(a, ONCE, 1.0)
    timers.cancel(a, ONCE)
    assert timers.next_due() is None
    assert timers.one_time == 0


def test_a_deleted_object_has_no_timers(timers):
    a = entity("a")
    timers.start(a, ONCE, 1.0)
    timers.start(a, BEAT, 2.0)
    timers.cancel_all(a.key)
    assert timers.take(9.0) is None


def test_a_finished_timer_stays_known_until_cancelled(timers):
    a = entity("a")
    timers.start(a, ONCE, 1.0)
    timer = timers.take(1.0)
    timers.finish(timer)
    assert timers.get(a, ONCE).state is State.DONE
    timers.cancel(a, ONCE)
    assert timers.get(a, ONCE) is None
    assert timers.one_time == 0


def test_a_restarted_timer_fires_again(timers):
    timers.start(entity("a"), BEAT, 1.0)
    timer = timers.take(1.0)
    timers.restart(timer, 11.0)
    assert timers.take(10.0) is None
    assert timers.take(11.0) is timer


def test_a_timer_cancelled_while_acting_is_not_restarted(timers):
    a = entity("a")
    timers.start(a, BEAT, 1.0)
    timer = timers.take(1.0)
    timers.cancel(a, BEAT)
    timers.restart(timer, 2.0)
    assert timers.next_due() is None


def test_repeating_timers_do_not_count_as_one_time(timers):
    timers.start(entity("a"), BEAT, 1.0)
    assert timers.one_time == 0
    timers.start(entity("b"), ONCE, 1.0)
    assert timers.one_time == 1
    timers.take(1.0)
    timers.finish(timers.take(1.0))
    assert timers.one_time == 0


def test_a_finished_timer_fires_again_when_its_object_has_changed(timers):
    timer = timers.start(entity("a"), ONCE, 1.0)
    timers.finish(timers.take(1.0))
    timers.note_change(timer, 2.0)
    assert timers.one_time == 1
    assert timers.take(2.0) is timer


def test_a_change_while_acting_is_remembered(timers):
    timers.start(entity("a"), ONCE, 1.0)
    timer = timers.take(1.0)
    timers.note_change(timer, 2.0)
    assert (timer.has_changed, timers.next_due()) == (True, None)


def test_a_change_moves_a_timer_forward_and_never_back(timers):
    timer = timers.start(entity("a"), ONCE, 10.0)
    timers.note_change(timer, 3.0)
    timers.note_change(timer, 5.0)
    assert timers.next_due() == 3.0
