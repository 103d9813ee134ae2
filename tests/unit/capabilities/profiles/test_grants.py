"""Plans made at once keep to one budget together."""

from nodeyard.capabilities.profiles.grants import Grants


def test_no_more_are_let_through_than_the_limit_allows():
    grants = Grants()
    assert [grants.ask("g", f"n{n}", ["x"], 3) for n in range(4)] == [True, True, False, False]


def test_who_was_let_through_may_ask_again():
    grants = Grants()
    assert grants.ask("g", "a", (), 1)
    assert grants.ask("g", "a", (), 1)
    assert not grants.ask("g", "b", (), 1)


def test_who_has_written_since_counts_once():
    grants = Grants()
    assert grants.ask("g", "a", (), 2)
    assert grants.ask("g", "b", ["a"], 2)
    assert not grants.ask("g", "c", ["a", "b"], 2)


def test_a_key_that_is_looked_at_anew_gives_its_place_back():
    grants = Grants()
    assert grants.ask("g", "a", (), 1)
    grants.withdraw("a")
    assert grants.ask("g", "b", (), 1)


def test_groups_do_not_compete():
    grants = Grants()
    assert grants.ask("g", "a", (), 1)
    assert grants.ask("h", "b", (), 1)
    grants.withdraw("a")
    assert not grants.ask("h", "c", (), 1)


def test_who_was_not_let_through_is_woken_in_the_order_of_asking():
    grants = Grants()
    for key in ("a", "b", "c"):
        grants.ask("g", key, (), 1)
    assert grants.next("g") == ["b", "c"]
    grants.withdraw("b")
    assert grants.next("g") == ["c"]
