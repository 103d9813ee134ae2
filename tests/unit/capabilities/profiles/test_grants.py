"""Plans made at once keep to one budget together."""

from datetime import UTC, datetime

from nodeyard.capabilities.profiles.grants import LASTS, Grants

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def nobody(_key: str) -> bool:
    return False


def test_no_more_are_let_through_than_there_is_room_for():
    grants = Grants()
    assert [grants.ask("g", f"n{n}", NOW, 2, nobody) for n in range(4)] == [True, True, False, False]


def test_who_was_let_through_may_ask_again():
    grants = Grants()
    assert grants.ask("g", "a", NOW, 1, nobody)
    assert grants.ask("g", "a", NOW, 1, nobody)
    assert not grants.ask("g", "b", NOW, 1, nobody)


def test_who_is_seen_to_have_written_is_counted_there_and_not_here_too():
    grants = Grants()
    assert grants.ask("g", "a", NOW, 2, nobody)
    assert grants.ask("g", "b", NOW, 1, lambda key: key == "a")
    assert not grants.ask("g", "c", NOW, 1, nobody)


def test_while_there_is_room_nobody_is_looked_at():
    asked = []
    grants = Grants()
    for number in range(100):
        assert grants.ask("g", f"n{number}", NOW, 100, asked.append)
    assert asked == []


def test_who_could_not_write_in_time_does_not_keep_the_others_waiting():
    grants = Grants()
    assert grants.ask("g", "a", NOW, 1, nobody)
    assert grants.lapse("g") == NOW + LASTS
    assert grants.ask("g", "b", NOW + LASTS, 1, nobody)


def test_a_key_that_is_looked_at_anew_gives_its_place_back():
    grants = Grants()
    assert grants.ask("g", "a", NOW, 1, nobody)
    grants.withdraw("a")
    assert grants.lapse("g") is None
    assert grants.ask("g", "b", NOW, 1, nobody)


def test_groups_do_not_compete():
    grants = Grants()
    assert grants.ask("g", "a", NOW, 1, nobody)
    assert grants.ask("h", "b", NOW, 1, nobody)
    grants.withdraw("a")
    assert not grants.ask("h", "c", NOW, 1, nobody)


def test_who_was_not_let_through_is_woken_in_the_order_of_asking():
    grants = Grants()
    for key in ("a", "b", "c"):
        grants.ask("g", key, NOW, 1, nobody)
    assert grants.next("g") == ["b", "c"]
    grants.withdraw("b")
    assert grants.next("g") == ["c"]


def test_who_leaves_without_having_begun_makes_room_for_those_who_wait():
    grants = Grants()
    for key in ("a", "b", "c"):
        grants.ask("g", key, NOW, 1, nobody)
    assert grants.release("a") == ["b", "c"]
    assert grants.ask("g", "b", NOW, 1, nobody)


def test_who_leaves_without_having_been_let_through_wakes_nobody():
    grants = Grants()
    for key in ("a", "b", "c"):
        grants.ask("g", key, NOW, 1, nobody)
    assert grants.release("b") == []
    assert grants.next("g") == ["c"]


def test_who_waits_behind_somebody_is_told_without_taking_the_place_away():
    grants = Grants()
    for key in ("a", "b"):
        grants.ask("g", key, NOW, 1, nobody)
    assert grants.behind("a") == ["b"]
    assert not grants.ask("g", "b", NOW, 1, nobody)
    assert grants.behind("b") == []
