"""Matching of services with pools: the index gives the same result as checking each pool."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.pools import service, taint

from nodeyard.capabilities.pools.messages.placement import (
    ClusterNotReady,
    LabelDiffers,
    LabelMissing,
    PoolDraining,
    PoolEmpty,
    TaintNotTolerated,
)
from nodeyard.capabilities.pools.planning.pool_index import PoolIndex, PoolOffer
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import PoolTaint

EXISTS = {"operator": "Exists"}


def offer(name, *, labels=None, taints=(), **given):
    """`cluster/pool`."""
    cluster, _, pool = name.partition("/")
    return PoolOffer(
        cluster=cluster,
        pool=pool,
        labels={**(labels or {}), "lattice.dev/pool": pool},
        taints=tuple(msgspec.convert(taint(text), PoolTaint) for text in taints),
        **given,
    )


def placement(selector=None, tolerations=()):
    return service("web", selector, tolerations).spec.placement


def fitting(offers, wanted):
    found = PoolIndex(offers).match(wanted).fitting
    return [f"{offers[position].cluster}/{offers[position].pool}" for position in found]


def refusals(offers, wanted):
    found = PoolIndex(offers).refusals(wanted)
    return {str(each): message for each, message in found}


def test_a_service_without_requirements_fits_every_pool_without_taints():
    offers = [offer("a/general"), offer("a/gpu", taints=["nvidia.com/gpu:NoSchedule"]), offer("b/general")]

    assert fitting(offers, placement()) == ["a/general", "b/general"]


def test_every_selected_label_has_to_be_there_with_its_value():
    offers = [
        offer("a/both", labels={"x": "1", "y": "2"}),
        offer("a/one", labels={"x": "1"}),
        offer("a/other", labels={"x": "1", "y": "3"}),
    ]

    assert fitting(offers, placement({"x": "1", "y": "2"})) == ["a/both"]
    assert refusals(offers, placement({"x": "1", "y": "2"})) == {
        "a/one": LabelMissing(cluster="a", pool="one", key="y"),
        "a/other": LabelDiffers(cluster="a", pool="other", key="y", value="3", wanted="2"),
    }


def test_a_pool_can_be_selected_by_its_id():
    assert fitting([offer("a/x"), offer("b/x"), offer("b/y")], placement({"lattice.dev/pool": "x"})) == ["a/x", "b/x"]


def test_the_first_taint_that_is_not_tolerated_is_named():
    offers = [offer("a/gpu", taints=["team=ml:NoExecute", "nvidia.com/gpu:NoSchedule"])]
    tolerated = placement({}, [{"key": "team", "operator": "Equal", "value": "ml"}])

    assert refusals(offers, tolerated)["a/gpu"] == TaintNotTolerated(
        cluster="a", pool="gpu", taint="nvidia.com/gpu:NoSchedule"
    )


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "value": "ml"}, True),
        ({"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}, True),
        ({"key": "team", "operator": "Equal", "value": "web"}, False),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "team"}, False),
    ],
    ids=lambda value: "" if isinstance(value, bool) else ",".join(f"{key}={text}" for key, text in value.items()),
)
def test_tolerations_are_read_as_kubernetes_does(toleration, fits):
    offers = [offer("a/ml", taints=["team=ml:NoSchedule"])]

    assert bool(fitting(offers, placement({}, [toleration]))) is fits


def test_a_prefer_taint_repels_no_service():
    assert fitting([offer("a/x", taints=["team=ml:PreferNoSchedule"])], placement()) == ["a/x"]


@pytest.mark.parametrize("message", [PoolEmpty, ClusterNotReady], ids=lambda message: message.reason)
def test_a_pool_that_would_fit_says_why_it_is_unavailable(message):
    offers = [
        offer("a/fits", labels={"x": "1"}, unavailable_reason=message.reason),
        offer("a/never", labels={"x": "2"}, unavailable_reason=message.reason),
    ]

    found = refusals(offers, placement({"x": "1"}))

    assert found["a/fits"] == message(cluster="a", pool="fits")
    assert found["a/never"].reason is Reason.LABEL_DIFFERS


def test_a_pool_being_removed_is_always_refused():
    offers = [PoolOffer("a", "old", labels={}, is_removed=True)]

    assert fitting(offers, placement()) == []
    assert refusals(offers, placement({"x": "1"}, [EXISTS]))["a/old"] == PoolDraining(cluster="a", pool="old")


def test_refusals_are_computed_only_up_to_the_requested_number():
    index = PoolIndex([offer(f"a/p{number:03}", labels={"x": "1"}) for number in range(100)])

    assert [each.pool for each, _ in index.refusals(placement({"x": "2"}), 3)] == ["p000", "p001", "p002"]


# comparison with a naive model

keys, values = st.sampled_from(["a", "b", "lattice.dev/pool"]), st.sampled_from(["", "1", "p0", "p1"])
effects = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
taints = st.builds(PoolTaint, key=st.sampled_from(["t", "u"]), value=st.sampled_from(["", "1"]), effect=effects)
tolerations = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["", "t", "u"]),
        "operator": st.sampled_from(["", "Equal", "Exists"]),
        "value": st.sampled_from(["", "1"]),
        "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
    },
)
placements = st.builds(placement, st.dictionaries(keys, values, max_size=3), st.lists(tolerations, max_size=2))


@st.composite
def indexes(draw):
    offers = []
    for number in range(draw(st.integers(0, 8))):
        pool = f"p{number}"
        if draw(st.booleans()) and draw(st.booleans()):
            offers.append(PoolOffer("c", pool, labels={}, is_removed=True))
            continue
        labels = draw(st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2))
        offers.append(
            PoolOffer(
                "c",
                pool,
                labels={**labels, "lattice.dev/pool": pool},
                taints=tuple(draw(st.lists(taints, max_size=2, unique_by=lambda each: (each.key, each.effect)))),
                unavailable_reason=draw(st.sampled_from([None, None, Reason.POOL_EMPTY])),
            )
        )
    return offers


def tolerates(toleration, each) -> bool:
    if toleration.effect not in ("", each.effect):
        return False
    if toleration.key == "":
        return toleration.operator == "Exists" or toleration.value == each.value
    if toleration.key != each.key:
        return False
    return toleration.operator == "Exists" or toleration.value == each.value


def naive(each, wanted):
    """Return the reason why one pool does not match; None if it matches."""
    if each.is_removed:
        return Reason.POOL_DRAINING
    for key in sorted(wanted.node_selector):
        if key not in each.labels:
            return Reason.LABEL_MISSING
        if each.labels[key] != wanted.node_selector[key]:
            return Reason.LABEL_DIFFERS
    for tainted in each.taints:
        hard = tainted.effect != "PreferNoSchedule"
        if hard and not any(tolerates(toleration, tainted) for toleration in wanted.tolerations):
            return Reason.TAINT_NOT_TOLERATED
    return each.unavailable_reason


@given(indexes(), placements)
def test_the_index_finds_what_asking_every_pool_finds(offers, wanted):
    index = PoolIndex(offers)
    expected = {each.pool: naive(each, wanted) for each in offers}

    match = index.match(wanted)
    refused = {each.pool: message.reason for each, message in index.refusals(wanted)}

    assert [offers[position].pool for position in match.fitting] == [p for p, why in expected.items() if why is None]
    assert refused == {pool: why for pool, why in expected.items() if why is not None}
    assert sum(match.counts.values()) == len(refused)
    assert all(list(refused.values()).count(reason) == count for reason, count in match.counts.items())


@given(indexes(), placements)
def test_more_tolerations_and_fewer_labels_never_lose_a_pool(offers, wanted):
    index = PoolIndex(offers)
    approval_roots = placement({}, [*map(msgspec.to_builtins, wanted.tolerations), EXISTS])

    assert set(index.match(wanted).fitting) <= set(index.match(approval_roots).fitting)
