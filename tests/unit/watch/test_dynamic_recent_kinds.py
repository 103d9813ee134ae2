"""Kinds that were met: bounded, and who is asked for stays."""

import pytest

from nodeyard.client.resources import untyped
from nodeyard.watch.dynamic import MOST, RecentKinds


def kind(name, version="v1", group="example.dev"):
    return untyped(group, version, f"{name.lower()}s", name)


@pytest.fixture
def changes():
    return []


@pytest.fixture
def sightings(changes):
    sightings = RecentKinds(most=3)
    sightings.on_change = lambda: changes.append(sightings.shown)
    return sightings


def test_what_was_seen_is_shown_in_the_order_of_names_whoever_was_first(sightings):
    for name in ("Widget", "Gadget"):
        sightings.record_lookup(kind(name))

    assert sightings.shown == (("example.dev/v1", "Gadget"), ("example.dev/v1", "Widget"))


def test_the_kind_seen_longest_ago_is_evicted(sightings):
    for name in ("A", "B", "C", "A", "D"):
        sightings.record_lookup(kind(name))

    assert [name for _, name in sightings.shown] == ["A", "C", "D"]


def test_a_kind_that_the_cache_is_asked_for_stays(sightings):
    for name in ("A", "B", "C"):
        sightings.record_lookup(kind(name))

    sightings.use("A.example.dev")
    sightings.record_lookup(kind("D"))

    assert [name for _, name in sightings.shown] == ["A", "C", "D"]


def test_asking_for_a_kind_that_was_never_seen_shows_nothing(sightings):
    sightings.use("A.example.dev")

    assert sightings.shown == ()


def test_two_groups_may_have_a_kind_of_the_same_name(sightings):
    sightings.record_lookup(kind("A"))
    sightings.record_lookup(kind("A", group="other.dev"))

    assert len(sightings.shown) == 2


def test_a_kind_stays_in_the_version_it_was_first_met_in_while_that_is_served(sightings, changes):
    sightings.record_lookup(kind("A"))
    sightings.record_lookup(kind("A", "v2"))
    assert sightings.shown == (("example.dev/v1", "A"),)

    sightings.record_lookup(kind("A", "v2"), is_other=True)

    assert sightings.shown == (("example.dev/v2", "A"),)
    assert len(changes) == 2


def test_only_a_change_is_reported(sightings, changes):
    for _ in range(3):
        sightings.record_lookup(kind("A"))

    assert changes == [(("example.dev/v1", "A"),)]


def test_the_number_of_kinds_is_bounded():
    sightings = RecentKinds()
    for number in range(MOST + 10):
        sightings.record_lookup(kind(f"Kind{number}"))

    assert len(sightings.shown) == MOST
