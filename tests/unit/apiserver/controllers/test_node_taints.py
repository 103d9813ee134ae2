import pytest

from nodeyard.apiserver.controllers.node_facts import Condition, Taint
from nodeyard.apiserver.controllers.node_taints import (
    evicting_key,
    has_evicting,
    no_schedule_keys,
    with_no_execute,
    with_no_schedule,
)

NOW = "2026-01-01T00:00:00Z"
MINE = Taint("example.com/mine", "v", "NoExecute")


@pytest.mark.parametrize(
    ("kind", "status", "key"),
    [
        ("Ready", "False", "node.kubernetes.io/not-ready"),
        ("Ready", "Unknown", "node.kubernetes.io/unreachable"),
        ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
        ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
        ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
        ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ],
)
def test_a_bad_condition_keeps_new_pods_away(kind, status, key):
    assert no_schedule_keys([Condition(kind, status)], is_unschedulable=False) == [key]


@pytest.mark.parametrize(
    ("kind", "status"), [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "Unknown")]
)
def test_a_good_or_unknown_condition_does_not(kind, status):
    assert no_schedule_keys([Condition(kind, status)], is_unschedulable=False) == []


def test_a_cordon_is_a_taint():
    assert no_schedule_keys([], is_unschedulable=True) == ["node.kubernetes.io/unschedulable"]


def test_taints_of_others_and_their_order_are_kept():
    old = Taint("node.kubernetes.io/not-ready", effect="NoSchedule", time_added="earlier")
    stale = Taint("node.kubernetes.io/disk-pressure", effect="NoSchedule")
    keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/memory-pressure"]
    added = Taint("node.kubernetes.io/memory-pressure", effect="NoSchedule", time_added=NOW)
    assert with_no_schedule((MINE, old, stale), keys, NOW) == [MINE, old, added]


def test_a_controller_taint_with_another_effect_is_foreign():
    soft = Taint("node.kubernetes.io/not-ready", effect="PreferNoSchedule")
    assert with_no_schedule((soft,), [], NOW) == [soft]


def test_the_two_evicting_taints_exclude_each_other():
    not_ready = with_no_execute((MINE,), evicting_key("False"), NOW)
    assert not_ready == [MINE, Taint("node.kubernetes.io/not-ready", effect="NoExecute", time_added=NOW)]
    unreachable = with_no_execute(not_ready, evicting_key("Unknown"), NOW)
    assert unreachable == [MINE, Taint("node.kubernetes.io/unreachable", effect="NoExecute", time_added=NOW)]
    assert with_no_execute(unreachable, evicting_key("Unknown"), "later") == unreachable
    assert with_no_execute(unreachable, evicting_key("True"), NOW) == [MINE]


def test_only_our_evicting_taints_count_as_such():
    assert not has_evicting([MINE])
    assert has_evicting(with_no_execute((), evicting_key("False"), NOW))
    assert not has_evicting(with_no_execute((), evicting_key("False"), NOW), evicting_key("Unknown"))
