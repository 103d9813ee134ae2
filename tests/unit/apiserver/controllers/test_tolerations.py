import pytest

from nodeyard.apiserver.controllers.node_facts import Taint
from nodeyard.apiserver.controllers.taint_eviction import FOREVER, Toleration, seconds_tolerated

TAINT = Taint("key", "value", "NoExecute")


@pytest.mark.parametrize(
    "toleration",
    [
        Toleration("key", "Equal", "value", "NoExecute"),
        Toleration("key", "", "value"),
        Toleration("key", "Exists"),
        Toleration("", "Exists"),
        Toleration("", "Exists", effect="NoExecute"),
    ],
    ids=str,
)
def test_a_toleration_that_fits_covers(toleration):
    assert toleration.covers(TAINT)


@pytest.mark.parametrize(
    "toleration",
    [
        Toleration("key", "Equal", "other"),
        Toleration("other", "Exists"),
        Toleration("key", "Exists", effect="NoSchedule"),
        Toleration("key", "Gt", "value"),
    ],
    ids=str,
)
def test_a_toleration_that_does_not_fit_does_not_cover(toleration):
    assert not toleration.covers(TAINT)


def test_without_taints_a_pod_is_not_evicted():
    assert seconds_tolerated([], []) == FOREVER


def test_one_taint_that_is_not_tolerated_is_enough():
    assert seconds_tolerated([TAINT, Taint("other", effect="NoExecute")], [Toleration("key", "Exists")]) == 0


def test_the_shortest_toleration_counts():
    taints = [TAINT, Taint("other", effect="NoExecute")]
    tolerations = [
        Toleration("key", "Exists", toleration_seconds=300),
        Toleration("other", "Exists", toleration_seconds=60),
        Toleration("unused", "Exists", toleration_seconds=1),
    ]
    assert seconds_tolerated(taints, tolerations) == 60


def test_a_toleration_without_end_or_with_a_negative_one():
    assert seconds_tolerated([TAINT], [Toleration("key", "Exists")]) == FOREVER
    assert seconds_tolerated([TAINT], [Toleration("key", "Exists", toleration_seconds=-5)]) == 0
