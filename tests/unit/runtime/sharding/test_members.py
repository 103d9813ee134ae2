"""Live members, by the renewal of their Leases."""

import pytest

from nodeyard.runtime.leader.lease import Lease, LeaseMeta, LeaseSpec
from nodeyard.runtime.sharding.members import STEADY_SECONDS, Members

DURATION = 14


def lease(holder, version, name=""):
    return Lease(LeaseMeta(name or f"replica-{holder}", str(version)), LeaseSpec(holder_identity=holder))


@pytest.fixture
def replicas(clock):
    return Members("us", clock, DURATION)


async def see_moving(replicas, clock, holder, seconds, start=1):
    for version in range(start, start + int(seconds)):
        replicas.observe([lease(holder, version)])
        await clock.advance(1)


def test_our_own_replica_is_live(replicas):
    assert replicas.live == {"us"}


async def test_one_that_is_seen_counts_until_it_has_stood_still_for_its_duration(replicas, clock):
    replicas.observe([lease("them", 1)])
    assert replicas.live == {"us", "them"}
    await clock.advance(DURATION)
    replicas.observe([lease("them", 1)])
    assert replicas.live == {"us"}


async def test_one_that_has_left_does_not_count(replicas):
    replicas.observe([lease("them", 1)])
    replicas.observe([])
    assert replicas.live == {"us"}
    replicas.observe([lease("", 2, "replica-them")])
    assert replicas.live == {"us"}


async def test_a_lease_that_lies_there_is_not_relied_on_however_new_it_is(replicas, clock):
    replicas.observe([lease("them", 1)])
    await clock.advance(STEADY_SECONDS)
    replicas.observe([lease("them", 1)])
    assert replicas.live == {"us", "them"}
    assert not replicas.is_steady("them")


async def test_one_is_relied_on_when_it_has_moved_for_a_while(replicas, clock):
    await see_moving(replicas, clock, "them", STEADY_SECONDS - 1)
    assert not replicas.is_steady("them")
    await see_moving(replicas, clock, "them", 2, start=100)
    assert replicas.is_steady("them")


async def test_one_that_was_dead_has_to_prove_itself_again(replicas, clock):
    await see_moving(replicas, clock, "them", STEADY_SECONDS + 1)
    assert replicas.is_steady("them")
    await clock.advance(DURATION)
    assert not replicas.is_steady("them")
    replicas.observe([lease("them", 1000)])
    assert replicas.live == {"us", "them"}
    assert not replicas.is_steady("them")
    await see_moving(replicas, clock, "them", STEADY_SECONDS + 1, start=2000)
    assert replicas.is_steady("them")
