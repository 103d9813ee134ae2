"""Leader election on the embedded server, under virtual time."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.client.errors import TransportTimeout
from nodeyard.client.resources import LEASES
from nodeyard.client.transport import Response
from nodeyard.kube.names import NAMESPACE
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.runtime.leader.election import Leader, lease_name
from nodeyard.sim.embedded import connect

NAME = lease_name("test")


@pytest.fixture
async def server(clock):
    server = Server(clock=clock)
    await server.start(())
    yield server
    await server.stop()


class FaultyTransport:
    """Transport of a client that can be cut or hang."""

    def __init__(self, transport):
        self._transport = transport
        self.is_cut = False
        self.hangs = False
        self.loses_answers = False
        self.is_closed_for_maintenance = False
        self.writes = 0

    async def send(self, request):
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_cut:
            raise TransportTimeout("cut", may_have_run=True)
        if self.is_closed_for_maintenance:
            return Response(200, {}, b"<html>back soon</html>")
        self.writes += request.method != "GET"
        response = await self._transport.send(request)
        if self.loses_answers:
            raise TransportTimeout("lost", may_have_run=True)
        return response

    async def close(self):
        await self._transport.close()


class Late:
    """Clock that jumps ahead, as after the process was suspended."""

    def __init__(self, clock):
        self.by = 0.0
        self._clock = clock
        self.now, self.sleep = clock.now, clock.sleep

    def monotonic(self):
        return self._clock.monotonic() + self.by


class Candidate:
    def __init__(self, server, clock, identity):
        self.client = connect(server)
        self.transport = self.client.transport = FaultyTransport(self.client.transport)
        self.changes = []
        self.leader = Leader(NAME, identity, clock, on_change=self.changes.append)
        self._stopped = asyncio.Event()
        self._task = asyncio.create_task(self.leader.run(self.client, self._stopped))

    async def stop(self):
        self._stopped.set()
        await self._task

    async def kill(self):
        """Stop like a killed process: no Lease is released."""
        self.transport.is_cut = True
        await self.stop()


@asynccontextmanager
async def candidates(server, clock, *identities):
    running = [Candidate(server, clock, identity) for identity in identities]
    try:
        yield running
    finally:
        for each in running:
            await each.stop()


async def lease(server):
    return (await connect(server).get(LEASES, NAME, NAMESPACE))["spec"]


async def test_the_first_candidate_leads_and_creates_the_lease(server, clock):
    async with candidates(server, clock, "one") as (one,):
        assert not one.leader.may_write()
        await clock.advance(1)
        assert one.leader.may_write()
        assert one.changes == [True]
        spec = await lease(server)
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("one", 15)


async def test_a_right_that_lapsed_and_came_back_is_signalled_again(server, clock):
    late = Late(clock)
    async with candidates(server, late, "one") as (one,):
        await clock.advance(1)
        late.by = 11
        assert not one.leader.may_write()
        await clock.advance(3)
        assert one.leader.may_write()
        assert one.changes == [True, True]


class Preempting(Late):
    """Run another thread at each read of the clock: a moment later it asks if it may write."""

    asked: Leader | None = None
    is_refused = False

    def monotonic(self):
        read = super().monotonic()
        asked, self.asked = self.asked, None
        if asked is not None:
            self.by += 0.02
            self.is_refused |= not asked.may_write()
            self.asked = asked
        return read


async def test_a_right_that_lapsed_during_a_late_renewal_is_signalled_again(clock):
    preempting, changes = Preempting(clock), []
    leader = Leader(NAME, "one", preempting, on_change=changes.append)
    leader._leads, leader._valid_until = True, preempting.monotonic() + 1

    async def renew_late():
        preempting.by += 0.99
        preempting.asked = leader
        return True

    leader._try = renew_late
    await leader._step()

    assert leader.may_write()
    assert changes == ([True] if preempting.is_refused else [])


async def test_answers_that_are_no_lease_are_outlived(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        one.transport.is_closed_for_maintenance = True
        await clock.advance(20)
        assert not one.leader.may_write()
        one.transport.is_closed_for_maintenance = False
        await clock.advance(5)
        assert one.leader.may_write()


async def test_renewals_are_micro_timestamps_and_on_time(server, clock):
    async with candidates(server, clock, "one"):
        await clock.advance(1)
        before = (await lease(server))["renewTime"]
        await clock.advance(10)
        spec = await lease(server)
        assert spec["renewTime"].endswith("Z")
        assert len(spec["renewTime"].partition(".")[2]) == 7
        assert 7 <= (parse_rfc3339(spec["renewTime"]) - parse_rfc3339(before)).total_seconds() <= 11


async def test_a_renewal_is_one_request(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        before = one.transport.writes
        await clock.advance(20)
        assert 9 <= one.transport.writes - before <= 12


async def test_at_no_moment_do_two_lead(server, clock):
    async with candidates(server, clock, "one", "two", "three") as all:
        for _ in range(200):
            await clock.advance(0.5)
            assert sum(each.leader.may_write() for each in all) <= 1
        assert sum(each.leader.may_write() for each in all) == 1


async def test_a_leader_that_is_cut_off_stops_before_another_begins(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        async with candidates(server, clock, "two") as (two,):
            await clock.advance(1)
            one.transport.is_cut = True
            stopped = begun = None
            for tenth in range(400):
                await clock.advance(0.1)
                assert not (one.leader.may_write() and two.leader.may_write())
                stopped = tenth if stopped is None and not one.leader.may_write() else stopped
                begun = tenth if begun is None and two.leader.may_write() else begun
            assert stopped is not None
            assert begun is not None
            assert begun - stopped >= 30
            assert one.changes == [True, False]
            assert (await lease(server))["leaseTransitions"] == 1


async def test_a_request_that_hangs_does_not_prolong_the_right_to_write(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        one.transport.hangs = True
        await clock.advance(10.5)
        assert not one.leader.may_write()
        assert one.changes == [True, False]
        one.transport.hangs = False


async def test_a_short_outage_changes_nothing(server, clock):
    async with candidates(server, clock, "one", "two") as (one, two):
        await clock.advance(1)
        leader = one if one.leader.may_write() else two
        leader.transport.is_cut = True
        await clock.advance(5)
        leader.transport.is_cut = False
        await clock.advance(30)
        assert leader.leader.may_write()
        assert leader.changes == [True]


async def test_a_renewal_with_a_lost_response_is_confirmed_by_a_get(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        one.transport.loses_answers = True
        await clock.advance(4)
        one.transport.loses_answers = False
        await clock.advance(30)
        assert one.changes == [True]
        assert (await lease(server))["leaseTransitions"] == 0


async def test_a_leader_that_lost_the_lease_gets_it_again_when_it_is_free(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        one.transport.is_cut = True
        await clock.advance(60)
        one.transport.is_cut = False
        await clock.advance(20)
        assert one.changes == [True, False, True]


async def test_stopping_gives_the_lease_back_and_the_next_one_leads_within_seconds(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        async with candidates(server, clock, "two") as (two,):
            await clock.advance(1)
            await one.stop()
            assert not one.leader.may_write()
            assert (await lease(server))["holderIdentity"] == ""
            await clock.advance(3)
            assert two.leader.may_write()


async def test_a_killed_leader_is_followed_after_its_lease_has_stood_still(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        async with candidates(server, clock, "two") as (two,):
            await clock.advance(1)
            await one.kill()
            await clock.advance(10)
            assert not two.leader.may_write()
            await clock.advance(10)
            assert two.leader.may_write()


async def test_a_lease_that_someone_deletes_is_made_again(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        await connect(server).delete(LEASES, NAME, NAMESPACE)
        await clock.advance(6)
        assert one.leader.may_write()
        assert (await lease(server))["holderIdentity"] == "one"


async def test_a_lease_taken_by_force_is_lost_at_the_next_renewal(server, clock):
    async with candidates(server, clock, "one") as (one,):
        await clock.advance(1)
        await connect(server).patch(LEASES, NAME, {"spec": {"holderIdentity": "thief"}}, NAMESPACE)
        await clock.advance(3)
        assert not one.leader.may_write()
        assert one.leader.holder == "thief"
