"""Keys that are reconciled at the same time share one budget."""

from __future__ import annotations

import pytest

from nodeyard.watch.reservations import Reservations


def reserving(*keys: str, budget: str = "b") -> Reservations:
    found = Reservations()
    for key in keys:
        found.reserve(key, {budget: f"token of {key}"})
    return found


def wait(reservations: Reservations, *keys: str, budget: str = "b") -> None:
    for key in keys:
        reservations.reserve(key, {}, [budget])


def test_a_reservation_is_seen_by_other_keys_with_its_token() -> None:
    assert reserving("k1", "k2").reserved("b") == {"k1": "token of k1", "k2": "token of k2"}


def test_budgets_do_not_compete() -> None:
    reservations = reserving("k1")
    wait(reservations, "k2", budget="c")
    assert reservations.reserved("c") == {}
    assert reservations.release("k1") == []


def test_a_key_that_reserves_again_replaces_what_it_had() -> None:
    reservations = reserving("k1")
    reservations.reserve("k1", {"c": "t"})
    assert (reservations.reserved("b"), reservations.reserved("c")) == ({}, {"k1": "t"})


def test_keys_wait_in_the_order_of_arrival_and_the_first_four_are_requeued() -> None:
    reservations = reserving("k0")
    wait(reservations, *"abcde")
    assert reservations.release("k0") == ["a", "b", "c", "d"]
    assert reservations.waiting("b") == ("a", "b", "c", "d")


def test_a_key_that_waits_again_goes_to_the_end() -> None:
    reservations = Reservations()
    wait(reservations, "a", "b", "a")
    assert reservations.waiting("b") == ("b", "a")


def test_a_key_that_reserves_does_not_wait_any_more() -> None:
    reservations = Reservations()
    wait(reservations, "a", "b")
    reservations.reserve("a", {"b": "t"})
    assert reservations.waiting("b") == ("b",)


def test_a_key_without_reservations_requeues_no_other() -> None:
    reservations = reserving("k1")
    wait(reservations, "a", "b")
    assert reservations.release("a") == []
    assert reservations.waiting("b") == ("a", "b")


def test_a_reservation_is_released_only_once() -> None:
    reservations = reserving("k1")
    wait(reservations, "a")
    assert reservations.release("k1") == ["a"]
    assert reservations.release("k1") == []


def test_a_key_may_reserve_one_budget_and_wait_for_another() -> None:
    reservations = Reservations()
    reservations.reserve("k1", {"b": "t"}, ["c"])
    wait(reservations, "k2")
    assert reservations.release("k1") == ["k2"]
    assert reservations.waiting("c") == ("k1",)


def test_a_plan_is_refused_if_another_key_reserved_since_its_snapshot() -> None:
    reservations = Reservations()
    reservations.begin("k1")
    reservations.begin("k2")
    assert reservations.reserve("k1", {"b": "t"})
    assert not reservations.reserve("k2", {"b": "t"})
    assert reservations.reserved("b") == {"k1": "t"}


@pytest.mark.parametrize("leave", [lambda all: all.release("k1"), lambda all: all.drop("k1")], ids=["release", "drop"])
def test_a_plan_that_found_the_budget_spent_is_refused_if_a_part_is_free_meanwhile(leave) -> None:  # type: ignore[no-untyped-def]
    reservations = reserving("k1")
    reservations.begin("k2")
    leave(reservations)
    assert not reservations.reserve("k2", {}, ["b"])


def test_a_plan_is_not_refused_for_other_or_earlier_reservations() -> None:
    reservations = reserving("k1")
    reservations.begin("k2")
    reservations.reserve("k3", {"c": "t"})
    assert reservations.reserve("k2", {"b": "t"})


def test_a_refused_key_is_planned_again_from_the_new_reservations() -> None:
    reservations = Reservations()
    reservations.begin("k2")
    reservations.reserve("k1", {"b": "t"})
    assert not reservations.reserve("k2", {"b": "t"})
    reservations.begin("k2")
    assert reservations.reserve("k2", {"b": "t"})


@pytest.mark.parametrize("forgets", [lambda all: all.drop("k1"), lambda all: all.clear()], ids=["key", "all"])
def test_a_dropped_key_leaves_no_reservations(forgets) -> None:  # type: ignore[no-untyped-def]
    reservations = Reservations()
    reservations.reserve("k1", {"b": "t"}, ["c"])
    forgets(reservations)
    assert not reservations.reserved("b")
    assert not reservations.waiting("c")
