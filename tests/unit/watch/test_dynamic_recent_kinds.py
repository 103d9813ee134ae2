"""Recent kinds of lookups: bounded, the least recently used is dropped."""

import pytest

from nodeyard.client.resources import untyped
from nodeyard.watch.dynamic import MOST, RecentKinds


def kind(name, version="v1", group="example.dev"):
    return untyped(group, version, f"{name.lower()}s", name)


@pytest.fixture
def changes():
    return []


@pytest.fixture
def recent_kinds(changes):
    recent_kinds = RecentKinds(most=3)
    recent_kinds.on_change = lambda: changes.append(recent_kinds.shown)
    return recent_kinds


def test_recent_kinds_are_sorted_by_name(recent_kinds):
    for name in ("Widget", "Gadget"):
        recent_kinds.record_lookup(kind(name))

    assert recent_kinds.shown == (("example.dev/v1", "Gadget"), ("example.dev/v1", "Widget"))


def test_the_kind_seen_longest_ago_is_evicted(recent_kinds):
    for name in ("A", "B", "C", "A", "D"):
        recent_kinds.record_lookup(kind(name))

    assert [name for _, name in recent_kinds.shown] == ["A", "C", "D"]


def test_a_kind_used_from_the_cache_stays(recent_kinds):
    for name in ("A", "B", "C"):
        recent_kinds.record_lookup(kind(name))

    recent_kinds.use("A.example.dev")
    recent_kinds.record_lookup(kind("D"))

    assert [name for _, name in recent_kinds.shown] == ["A", "C", "D"]


def test_asking_for_a_kind_that_was_never_seen_shows_nothing(recent_kinds):
    recent_kinds.use("A.example.dev")

    assert recent_kinds.shown == ()


def test_two_groups_may_have_a_kind_of_the_same_name(recent_kinds):
    recent_kinds.record_lookup(kind("A"))
    recent_kinds.record_lookup(kind("A", group="other.dev"))

    assert len(recent_kinds.shown) == 2


def test_a_kind_stays_in_the_version_it_was_first_met_in_while_that_is_served(recent_kinds, changes):
    recent_kinds.record_lookup(kind("A"))
    recent_kinds.record_lookup(kind("A", "v2"))
    assert recent_kinds.shown == (("example.dev/v1", "A"),)

    recent_kinds.record_lookup(kind("A", "v2"), is_other=True)

    assert recent_kinds.shown == (("example.dev/v2", "A"),)
    assert len(changes) == 2


def test_only_a_change_is_reported(recent_kinds, changes):
    for _ in range(3):
        recent_kinds.record_lookup(kind("A"))

    assert changes == [(("example.dev/v1", "A"),)]


def test_the_number_of_kinds_is_bounded():
    recent_kinds = RecentKinds()
    for number in range(MOST + 10):
        recent_kinds.record_lookup(kind(f"Kind{number}"))

    assert len(recent_kinds.shown) == MOST
