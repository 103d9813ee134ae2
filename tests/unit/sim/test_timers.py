"""Appointments come up in the order of their time, unless called off."""

import pytest

from nodeyard.sim.index import Index, Key
from nodeyard.sim.stage_book import parse_book
from nodeyard.sim.timers import Agenda, State

BOOK = parse_book(
    [
        (
            "b.yaml",
            "stages:\n"
            "- {name: once, for: {apiVersion: v1, kind: Pod}, do: [{delete: {}}]}\n"
            "- {name: beat, for: {apiVersion: v1, kind: Pod}, delay: 10s, repeat: true, do: [{delete: {}}]}\n",
        )
    ]
)
ONCE, BEAT = BOOK.stages


def entity(name):
    index = Index(BOOK)
    key = Key(ONCE.kind, "ns", name)
    index.put(key, {"metadata": {"name": name}})
    return index.get(key)


@pytest.fixture
def agenda():
    return Agenda()


def test_the_earliest_comes_first_and_only_when_due(agenda):
    agenda.make(entity("a"), ONCE, 5.0)
    agenda.make(entity("b"), ONCE, 3.0)
    assert agenda.next_due() == 3.0
    assert agenda.take(2.9) is None
    assert agenda.take(4.0).entity.key.name == "b"
    assert agenda.take(4.0) is None


def test_of_the_same_moment_the_first_made_comes_first(agenda):
    for name in "abc":
        agenda.make(entity(name), ONCE, 1.0)
    assert [agenda.take(1.0).entity.key.name for _ in range(3)] == ["a", "b", "c"]


def test_one_called_off_does_not_come(agenda):
    a = entity("a")
    agenda.make(a, ONCE, 1.0)
    agenda.call_off(a, ONCE)
    assert agenda.next_due() is None
    assert agenda.one_time == 0


def test_an_object_that_is_gone_has_no_appointments(agenda):
    a = entity("a")
    agenda.make(a, ONCE, 1.0)
    agenda.make(a, BEAT, 2.0)
    agenda.forget(a.key)
    assert agenda.take(9.0) is None


def test_one_done_stays_known_until_called_off(agenda):
    a = entity("a")
    agenda.make(a, ONCE, 1.0)
    appointment = agenda.take(1.0)
    agenda.finish(appointment)
    assert agenda.get(a, ONCE).state is State.DONE
    agenda.call_off(a, ONCE)
    assert agenda.get(a, ONCE) is None
    assert agenda.one_time == 0


def test_one_postponed_comes_again(agenda):
    agenda.make(entity("a"), BEAT, 1.0)
    appointment = agenda.take(1.0)
    agenda.postpone(appointment, 11.0)
    assert agenda.take(10.0) is None
    assert agenda.take(11.0) is appointment


def test_one_called_off_while_acting_is_not_postponed(agenda):
    a = entity("a")
    agenda.make(a, BEAT, 1.0)
    appointment = agenda.take(1.0)
    agenda.call_off(a, BEAT)
    agenda.postpone(appointment, 2.0)
    assert agenda.next_due() is None


def test_what_repeats_is_not_waited_for(agenda):
    agenda.make(entity("a"), BEAT, 1.0)
    assert agenda.one_time == 0
    agenda.make(entity("b"), ONCE, 1.0)
    assert agenda.one_time == 1
    agenda.take(1.0)
    agenda.finish(agenda.take(1.0))
    assert agenda.one_time == 0


def test_an_appointment_that_is_done_comes_up_again_when_its_object_has_changed(agenda):
    made = agenda.make(entity("a"), ONCE, 1.0)
    agenda.finish(agenda.take(1.0))
    agenda.renew(made, 2.0)
    assert agenda.one_time == 1
    assert agenda.take(2.0) is made


def test_a_change_while_acting_is_remembered(agenda):
    agenda.make(entity("a"), ONCE, 1.0)
    made = agenda.take(1.0)
    agenda.renew(made, 2.0)
    assert (made.is_overtaken, agenda.next_due()) == (True, None)


def test_a_change_brings_another_attempt_forward_and_never_puts_it_off(agenda):
    made = agenda.make(entity("a"), ONCE, 10.0)
    agenda.renew(made, 3.0)
    agenda.renew(made, 5.0)
    assert agenda.next_due() == 3.0
