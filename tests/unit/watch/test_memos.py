"""A memo is computed once per state, and kept for a short time."""

from datetime import UTC, datetime, timedelta

import pytest

from nodeyard.watch.view import MEMO_TIME, Memos

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def computed():
    return []


@pytest.fixture
def ask(computed):
    memos = Memos()

    def compute():
        computed.append(None)
        return len(computed)

    return lambda state="a", now=NOW, subject="nova": memos.get(subject, state, now, compute)


def test_a_value_is_computed_once_for_all_users(ask):
    assert [ask(), ask(), ask()] == [1, 1, 1]


def test_another_state_of_its_causes_is_computed_anew(ask):
    assert [ask("a"), ask("b"), ask("b")] == [1, 2, 2]


def test_subjects_have_values_of_their_own(ask):
    assert [ask(subject="nova"), ask(subject="neutron"), ask(subject="nova")] == [1, 2, 1]


def test_it_is_computed_anew_when_it_is_too_old(ask):
    just_before, then = NOW + MEMO_TIME - timedelta(milliseconds=1), NOW + MEMO_TIME
    assert [ask(), ask(now=just_before), ask(now=then)] == [1, 1, 2]
