"""Concurrent plans share one rollout budget."""

from datetime import UTC, datetime

from nodeyard.capabilities.profiles.rollout_slots import SLOT_TTL, RolloutSlots

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def nobody(_key: str) -> bool:
    return False


def test_no_more_are_let_through_than_there_is_room_for():
    slots = RolloutSlots()
    assert [slots.acquire("g", f"n{n}", NOW, 2, nobody) for n in range(4)] == [True, True, False, False]


def test_who_was_let_through_may_ask_again():
    slots = RolloutSlots()
    assert slots.acquire("g", "a", NOW, 1, nobody)
    assert slots.acquire("g", "a", NOW, 1, nobody)
    assert not slots.acquire("g", "b", NOW, 1, nobody)


def test_who_is_seen_to_have_written_is_counted_there_and_not_here_too():
    slots = RolloutSlots()
    assert slots.acquire("g", "a", NOW, 2, nobody)
    assert slots.acquire("g", "b", NOW, 1, lambda key: key == "a")
    assert not slots.acquire("g", "c", NOW, 1, nobody)


def test_while_there_is_room_nobody_is_looked_at():
    asked = []
    slots = RolloutSlots()
    for number in range(100):
        assert slots.acquire("g", f"n{number}", NOW, 100, asked.append)
    assert asked == []


def test_who_could_not_write_in_time_does_not_keep_the_others_waiting():
    slots = RolloutSlots()
    assert slots.acquire("g", "a", NOW, 1, nobody)
    assert slots.next_expiry("g") == NOW + SLOT_TTL
    assert slots.acquire("g", "b", NOW + SLOT_TTL, 1, nobody)


def test_a_key_that_is_looked_at_anew_gives_its_place_back():
    slots = RolloutSlots()
    assert slots.acquire("g", "a", NOW, 1, nobody)
    slots.clear("a")
    assert slots.next_expiry("g") is None
    assert slots.acquire("g", "b", NOW, 1, nobody)


def test_groups_do_not_compete():
    slots = RolloutSlots()
    assert slots.acquire("g", "a", NOW, 1, nobody)
    assert slots.acquire("h", "b", NOW, 1, nobody)
    slots.clear("a")
    assert not slots.acquire("h", "c", NOW, 1, nobody)


def test_who_was_not_let_through_is_woken_in_the_order_of_asking():
    slots = RolloutSlots()
    for key in ("a", "b", "c"):
        slots.acquire("g", key, NOW, 1, nobody)
    assert slots.next_waiting("g") == ["b", "c"]
    slots.clear("b")
    assert slots.next_waiting("g") == ["c"]


def test_who_leaves_without_having_begun_makes_room_for_those_who_wait():
    slots = RolloutSlots()
    for key in ("a", "b", "c"):
        slots.acquire("g", key, NOW, 1, nobody)
    assert slots.release("a") == ["b", "c"]
    assert slots.acquire("g", "b", NOW, 1, nobody)


def test_who_leaves_without_having_been_let_through_wakes_nobody():
    slots = RolloutSlots()
    for key in ("a", "b", "c"):
        slots.acquire("g", key, NOW, 1, nobody)
    assert slots.release("b") == []
    assert slots.next_waiting("g") == ["c"]


def test_who_waits_behind_somebody_is_told_without_taking_the_place_away():
    slots = RolloutSlots()
    for key in ("a", "b"):
        slots.acquire("g", key, NOW, 1, nobody)
    assert slots.successors("a") == ["b"]
    assert not slots.acquire("g", "b", NOW, 1, nobody)
    assert slots.successors("b") == []
