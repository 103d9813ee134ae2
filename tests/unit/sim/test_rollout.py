"""A rolling update stays within its bounds in every step, and completes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.sim.machines.rollout import SetSize, amount, identity, scaled


def full(name, count):
    return SetSize(name, count, count, count)


def test_the_first_generation_has_all_machines_at_once():
    assert scaled(3, SetSize("new", 0, 0, 0), [], 1, 0) == {"new": 3}


def test_a_new_machine_is_created_before_an_old_one_is_deleted():
    assert scaled(2, SetSize("new", 0, 0, 0), [full("old", 2)], 1, 0) == {"new": 1}
    assert scaled(2, SetSize("new", 1, 1, 0), [full("old", 2)], 1, 0) == {}
    assert scaled(2, full("new", 1), [full("old", 2)], 1, 0) == {"old": 1}


def test_machines_that_are_still_going_count():
    assert scaled(2, full("new", 1), [SetSize("old", 1, 2, 2)], 1, 0) == {}


def test_unavailable_machines_are_deleted_first():
    broken = SetSize("broken", 1, 1, 0)
    assert scaled(2, full("new", 1), [full("old", 1), broken], 1, 0) == {"broken": 0}


def test_without_surge_an_old_machine_goes_first():
    assert scaled(2, SetSize("new", 0, 0, 0), [full("old", 2)], 0, 1) == {"old": 1}


def test_fewer_machines_are_wanted():
    assert scaled(1, full("new", 3), [], 1, 0) == {"new": 1}


@given(
    wanted=st.integers(0, 12),
    before=st.integers(0, 12),
    surge=st.integers(0, 3),
    unavailable=st.integers(0, 3),
    failing=st.booleans(),
)
def test_no_step_leaves_the_bounds_and_the_last_one_is_the_end(wanted, before, surge, unavailable, failing):
    if surge == 0 and unavailable == 0:
        surge = 1
    sizes = {"new": 0, "old": before}
    for _ in range(4 * (wanted + before) + 4):
        available = {"new": 0 if failing else sizes["new"], "old": sizes["old"]}
        new, old = (SetSize(name, sizes[name], sizes[name], available[name]) for name in ("new", "old"))
        step = scaled(wanted, new, [old] if sizes["old"] else [], surge, unavailable)
        if not step:
            break
        lost = sum(max(0, available[name] - size) for name, size in step.items())
        assert sum(available.values()) - lost >= min(wanted - unavailable, sum(available.values()))
        assert step.get("new", 0) <= max(wanted, sizes["new"])
        sizes.update(step)
        assert sum(sizes.values()) <= max(wanted + surge, before)
    assert step == {}
    if not failing:
        assert sizes == {"new": wanted, "old": 0}


@pytest.mark.parametrize(
    ("value", "rounds_up", "count"), [(2, True, 2), ("25%", True, 2), ("25%", False, 1), ("100%", False, 5)]
)
def test_an_amount_is_a_number_or_a_share(value, rounds_up, count):
    assert amount(value, 5, rounds_up=rounds_up) == count


def test_only_replacing_changes_make_machines_outdated():
    spec = {"version": "v1.35.0", "bootstrap": {"configRef": {"name": "a"}}, "infrastructureRef": {"name": "a"}}
    assert identity(spec) == identity({**spec, "deletion": {"nodeDrainTimeoutSeconds": 1}})
    assert identity(spec) != identity({**spec, "version": "v1.36.0"})
    assert identity(spec) != identity({**spec, "infrastructureRef": {"name": "b"}})
