"""Conditions by the API conventions: changes of lastTransitionTime."""

from datetime import UTC, datetime, timedelta

from nodeyard.kube.conditions import find, is_true, to_wire, with_condition
from nodeyard.kube.objects import Condition

THEN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = THEN + timedelta(minutes=5)
READY = Condition(
    type="Ready", status="True", reason="Fine", message="all is", observed_generation=2, last_transition_time=THEN
)
OTHER = Condition(type="Other", status="False", last_transition_time=THEN)
BOTH = (READY, OTHER)


def ready(status="True", **fields):
    return Condition(type="Ready", status=status, **{"observed_generation": 2, **fields})


def test_a_new_condition_is_appended_with_the_current_time():
    assert with_condition((OTHER,), ready(), NOW) == (OTHER, ready(last_transition_time=NOW))


def test_a_changed_status_moves_the_time():
    changed, other = with_condition(BOTH, ready("False"), NOW)
    assert (changed.status, changed.last_transition_time) == ("False", NOW)
    assert other is OTHER


def test_a_changed_reason_or_message_leaves_the_time():
    changed, _ = with_condition(BOTH, ready(reason="Better", message="even so"), NOW)
    assert (changed.reason, changed.last_transition_time) == ("Better", THEN)


def test_a_new_generation_leaves_the_time():
    changed, _ = with_condition(BOTH, ready(observed_generation=3), NOW)
    assert (changed.observed_generation, changed.last_transition_time) == (3, THEN)


def test_setting_an_equal_condition_returns_the_same_tuple():
    assert with_condition(BOTH, ready(reason="Fine", message="all is"), NOW) is BOTH


def test_a_condition_of_an_older_generation_changes_nothing():
    assert with_condition(BOTH, ready("False", observed_generation=1), NOW) is BOTH


def test_a_time_that_is_given_counts_where_the_status_is_new():
    known = THEN + timedelta(minutes=1)
    changed, _ = with_condition(BOTH, ready("False", last_transition_time=known), NOW)
    assert changed.last_transition_time == known


def test_times_are_whole_seconds_as_the_server_keeps_them():
    [condition] = with_condition((), ready(), NOW.replace(microsecond=7))
    assert condition.last_transition_time == NOW


def test_conditions_are_found_and_asked():
    assert find(BOTH, "Ready") is READY
    assert find(BOTH, "Missing") is None
    assert (is_true(BOTH, "Ready"), is_true(BOTH, "Other"), is_true(BOTH, "Missing")) == (True, False, False)


def test_a_condition_of_an_older_generation_is_unknown():
    assert is_true(BOTH, "Ready", generation=2)
    assert not is_true(BOTH, "Ready", generation=3)


def test_on_the_wire_what_is_required_is_there_and_a_zero_generation_is_not():
    assert to_wire(BOTH) == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Fine",
            "message": "all is",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 2,
        },
        {
            "type": "Other",
            "status": "False",
            "reason": "",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ]
