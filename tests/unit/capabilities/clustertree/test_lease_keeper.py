"""The lease loop on embedded servers in process, under virtual time: a root, and leaves that can be cut off."""

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from tests.builders.lease_loop import LeaseLoopHarness, add_node, lease_of, renew_time
from tests.builders.remote_clusters import RemoteClusters

from nodeyard.apiserver.server import Server
from nodeyard.capabilities.clustertree.leases.inputs import NodeLeaseInput
from nodeyard.capabilities.clustertree.leases.keeper import LATE, next_round
from nodeyard.capabilities.clustertree.leases.liveness import State
from nodeyard.capabilities.clustertree.leases.node_lease import manifest
from nodeyard.client.errors import TransportError
from nodeyard.client.resources import LEASES, NODES
from nodeyard.client.transport import Response
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.kube.timestamps import format_rfc3339_micro, parse_rfc3339
from nodeyard.sim.embedded import connect


class RootWire:
    """The transport to the root, with faults for single leases."""

    def __init__(self, inner):
        self._inner = inner
        self.requests = []
        self.answers = {}
        """Status codes for writes of a lease, by node."""
        self.lost = set()
        """Nodes whose writes are executed and whose response is lost."""
        self.hanging = set()
        """Nodes whose writes hang."""
        self.queued = None
        """A write fence that closes while a write waits for its connection."""

    async def send(self, request):
        method, path = request.method, request.path
        self.requests.append((method, path.rpartition("/")[2]))
        node = path.rpartition("/")[2]
        if method != "GET" and self.queued is not None:
            self.queued.is_open = False
        if method != "GET" and node in self.hanging:
            await asyncio.Event().wait()
        if method != "GET" and node in self.answers:
            code = self.answers[node]
            status = {"kind": "Status", "status": "Failure", "code": code, "message": f"{code} as asked"}
            return Response(code, {}, json.dumps(status).encode())
        answer = await self._inner.send(request)
        if method != "GET" and node in self.lost:
            raise TransportError(f"{method} {path}: the answer was lost", may_have_run=True)
        return answer


class Env:
    """A root, leaves, and the lease loop."""

    def __init__(self, clock, root, remotes):
        self.clock = clock
        self.root = connect(root)
        self.client = connect(root)
        self.wire = self.client.transport = RootWire(self.client.transport)
        self.forest = remotes
        self.harness = LeaseLoopHarness()

    @asynccontextmanager
    async def keeping(self):
        async with self.harness.running(self.client, self.clock, self.forest.connect):
            await self.clock.advance(0)
            yield self.harness

    async def rounds(self, count):
        await self.clock.advance(10.0 * count)

    async def age(self, node):
        """Seconds since the lease was renewed."""
        return (self.clock.now() - parse_rfc3339(await renew_time(self.root, node))).total_seconds()


@pytest.fixture
async def env(clock):
    root = Server(clock, seed=1)
    await root.start(())
    remotes = RemoteClusters(clock)
    await remotes.add("oak", "elm")
    yield Env(clock, root, remotes)
    await remotes.stop()
    await root.stop()


async def test_the_first_round_makes_the_lease_and_later_ones_renew_it(env):
    env.harness.put("oak", b"oak first", "kosmos-oak")
    async with env.keeping():
        made = await lease_of(env.root, "kosmos-oak")
        assert made["spec"]["holderIdentity"] == "kosmos-oak"
        assert made["spec"]["leaseDurationSeconds"] == 40
        assert made["spec"]["acquireTime"] == made["spec"]["renewTime"]
        assert made["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Node", "name": "kosmos-oak", "uid": "uid-of-kosmos-oak"}
        ]
        for _ in range(5):
            await env.rounds(1)
            assert await env.age("kosmos-oak") <= 10.0
        renewed = await lease_of(env.root, "kosmos-oak")
        assert renewed["spec"]["acquireTime"] == made["spec"]["acquireTime"]
        assert env.harness.state("oak") is State.ALIVE


async def test_a_renewal_is_one_request(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping():
        await env.rounds(2)
        before = len(env.wire.requests)
        await env.rounds(5)
        assert env.wire.requests[before:] == [("PATCH", "n1")] * 5


async def test_a_healthy_leaf_enqueues_nothing(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        assert loop_harness.marked == ["oak"]
        first = loop_harness.health("oak")
        await env.rounds(10)
        assert loop_harness.marked == ["oak"]
        assert loop_harness.health("oak").renewed_at > first.renewed_at
        assert loop_harness.health("oak").last_contact > first.last_contact


async def test_a_lease_that_was_there_is_taken_up(env):
    old = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "another-life"}
    metadata = {"name": "n1", "namespace": LEASE_NAMESPACE, "ownerReferences": [old]}
    await env.root.create(LEASES, {"metadata": metadata, "spec": {"holderIdentity": "n1"}})
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping():
        found = await lease_of(env.root, "n1")
        assert [each["uid"] for each in found["metadata"]["ownerReferences"]] == ["uid-of-n1"]
        assert found["spec"]["leaseDurationSeconds"] == 40


async def test_a_recreated_node_owns_its_lease(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        uid = await add_node(env.root, "n1")
        loop_harness.change("oak", nodes=(NodeLeaseInput("n1", uid, True),))
        await env.rounds(1.5)
        found = await lease_of(env.root, "n1")
        assert [each["uid"] for each in found["metadata"]["ownerReferences"]] == [uid]
        assert await env.age("n1") <= 10.0


async def test_a_deleted_lease_is_recreated(env):
    env.harness.put("oak", b"oak first", ("n1", await add_node(env.root, "n1"), True))
    async with env.keeping():
        await env.root.delete(LEASES, "n1", LEASE_NAMESPACE)
        await env.rounds(1.5)
        assert await env.age("n1") <= 10.0


@pytest.mark.parametrize("is_made_anew", [False, True])
async def test_a_lease_deleted_with_its_node_is_not_recreated_by_a_replica_that_missed_it(env, is_made_anew):
    env.harness.put("oak", b"oak first", ("n1", await add_node(env.root, "n1"), True))
    async with env.keeping() as loop_harness:
        await env.root.delete(NODES, "n1")
        await env.root.delete(LEASES, "n1", LEASE_NAMESPACE)
        if is_made_anew:
            await add_node(env.root, "n1")
        await env.rounds(2.5)
        assert await lease_of(env.root, "n1") is None
        assert loop_harness.health("oak").failed == ()


async def test_no_lease_is_renewed_for_a_leaf_that_is_cut_off(env):
    [oak] = [env.forest.leaves["oak"]]
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        await env.rounds(2)
        oak.disconnect()
        before = await renew_time(env.root, "n1")
        contact = loop_harness.health("oak").last_contact
        await env.rounds(1)
        assert loop_harness.state("oak") is State.FAILING
        await env.rounds(2)
        assert loop_harness.state("oak") is State.UNREACHABLE
        assert loop_harness.health("oak").last_contact == contact
        assert "cut" in loop_harness.health("oak").message
        assert await renew_time(env.root, "n1") == before


async def test_a_leaf_that_is_back_is_renewed_after_two_good_probes(env):
    oak = env.forest.leaves["oak"]
    env.harness.put("oak", b"oak first", "n1")
    oak.disconnect()
    async with env.keeping() as loop_harness:
        await env.rounds(3)
        assert loop_harness.state("oak") is State.UNREACHABLE
        assert await lease_of(env.root, "n1") is None
        oak.reconnect()
        await env.rounds(1)
        assert (loop_harness.state("oak"), await lease_of(env.root, "n1")) == (State.UNREACHABLE, None)
        await env.rounds(1)
        assert loop_harness.state("oak") is State.ALIVE
        assert await env.age("n1") <= 10.0


async def test_a_leaf_that_hangs_delays_no_other(env):
    env.forest.leaves["oak"].is_hanging = True
    env.harness.put("oak", b"oak first", "n1")
    env.harness.put("elm", b"elm first", "n2")
    async with env.keeping() as loop_harness:
        for _ in range(6):
            await env.rounds(1)
            assert await env.age("n2") <= 10.0
        assert (loop_harness.state("oak"), loop_harness.state("elm")) == (State.UNREACHABLE, State.ALIVE)
        assert loop_harness.health("oak").message == "GET /readyz: no answer in 5 s"


async def test_a_leaf_that_rejects_us_is_renewed_for_the_grace(env):
    oak = env.forest.leaves["oak"]
    env.harness.put("oak", b"oak first", "n1", credential_grace=timedelta(minutes=2))
    async with env.keeping() as loop_harness:
        await env.rounds(1)
        oak.tokens = {"second"}
        await env.rounds(11)
        assert loop_harness.state("oak") is State.REJECTING
        assert "401" in loop_harness.health("oak").message
        assert await env.age("n1") <= 10.0
        await env.rounds(4)
        assert (loop_harness.state("oak"), loop_harness.health("oak").is_rejected) == (State.UNREACHABLE, True)
        assert await env.age("n1") > 10.0


async def test_another_cluster_that_answers_keeps_leases_only_during_the_grace(env):
    env.harness.put("oak", b"oak first", "n1", credential_grace=timedelta(minutes=2))
    async with env.keeping() as loop_harness:
        await env.rounds(1)
        loop_harness.change("oak", is_other=True)
        await env.rounds(11)
        assert loop_harness.state("oak") is State.REJECTING
        assert await env.age("n1") <= 10.0
        await env.rounds(4)
        assert (loop_harness.state("oak"), loop_harness.health("oak").is_rejected) == (State.UNREACHABLE, True)
        assert await env.age("n1") > 10.0
        loop_harness.change("oak", is_other=False)
        await env.rounds(2)
        assert loop_harness.state("oak") is State.ALIVE
        assert await env.age("n1") <= 10.0


async def test_a_queued_write_checks_the_fence_before_it_is_sent(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        await env.rounds(2)
        before = await renew_time(env.root, "n1")
        # An exhausted connection pool: the lease is lost while the write waits.
        env.wire.queued = loop_harness.gate
        await env.rounds(2)
        assert await renew_time(env.root, "n1") == before
        env.wire.queued, loop_harness.gate.is_open = None, True
        await env.rounds(2)
        assert await renew_time(env.root, "n1") != before


async def test_a_grace_period_survives_a_takeover(env):
    env.forest.leaves["oak"].tokens = {"second"}
    began = env.clock.now() - timedelta(seconds=100)
    env.harness.put("oak", b"oak first", "n1", credential_grace=timedelta(minutes=2), rejected_since=began)
    async with env.keeping() as loop_harness:
        assert (loop_harness.state("oak"), loop_harness.health("oak").rejected_since) == (State.REJECTING, began)
        await env.rounds(3)
        assert (loop_harness.state("oak"), loop_harness.health("oak").rejected_since) == (State.UNREACHABLE, began)


async def test_rotated_credentials_are_tried_at_once(env):
    oak = env.forest.leaves["oak"]
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        oak.tokens = {"second"}
        await env.rounds(2)
        assert loop_harness.state("oak") is State.REJECTING
        loop_harness.change("oak", kubeconfig=b"oak second")
        await env.clock.advance(0.1)
        assert loop_harness.state("oak") is State.ALIVE
        assert await env.age("n1") <= 0.2


async def test_kubeconfigs_that_fail_one_after_another_do_not_make_a_leaf_unreachable_sooner(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        await env.clock.advance(next_round("oak", 0.0) + 0.1)
        env.forest.leaves["oak"].disconnect()
        for number in range(5):
            loop_harness.change("oak", kubeconfig=f"oak {number}".encode())
            await env.clock.advance(0.1)
        assert loop_harness.state("oak") is State.ALIVE
        await env.rounds(2)
        assert loop_harness.state("oak") is State.FAILING
        await env.rounds(1)
        assert loop_harness.state("oak") is State.UNREACHABLE


async def test_a_kubeconfig_that_cannot_be_used_counts_as_no_answer(env):
    env.harness.put("oak", b'{"clusters": 7}', "n1")
    env.harness.put("elm", b"", "n2")
    async with env.keeping() as loop_harness:
        await env.rounds(3)
        assert loop_harness.state("oak") is State.UNREACHABLE
        assert loop_harness.health("oak").message.startswith("the kubeconfig is refused")
        assert (loop_harness.state("elm"), loop_harness.health("elm").message) == (State.UNREACHABLE, "no kubeconfig")


async def test_a_leaf_whose_grace_period_ended_is_not_renewed_after_a_takeover(env):
    env.harness.put("oak", b"oak first", "n1", is_given_up=True)
    async with env.keeping() as loop_harness:
        assert (loop_harness.state("oak"), await lease_of(env.root, "n1")) == (State.UNREACHABLE, None)
        await env.rounds(1.5)
        assert loop_harness.state("oak") is State.ALIVE
        assert await env.age("n1") <= 15.0


async def test_a_node_that_the_leaf_has_lost_is_not_renewed_and_the_others_are(env):
    env.harness.put("oak", b"oak first", "n1", ("n2", "u2", False))
    async with env.keeping() as loop_harness:
        await env.rounds(2)
        assert await lease_of(env.root, "n2") is None
        assert await env.age("n1") <= 10.0
        assert loop_harness.health("oak").failed == ()


async def test_a_new_node_gets_its_lease_before_the_next_round(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        # Just after a round, so that the next one is far away.
        await env.clock.advance(next_round("oak", 0.0) + 0.1)
        loop_harness.change("oak", nodes=(NodeLeaseInput("n1", "u1", True), NodeLeaseInput("n2", "u2", True)))
        await env.clock.advance(0.1)
        assert await env.age("n2") <= 0.2


async def test_the_time_of_the_last_renewal_is_published_and_the_first_one_at_once(env):
    env.harness.put("oak", b"oak first")
    async with env.keeping() as loop_harness:
        assert (loop_harness.health("oak").renewed_at, loop_harness.marked) == (None, ["oak"])
        await env.clock.advance(next_round("oak", 0.0) + 0.1)
        loop_harness.change("oak", nodes=(NodeLeaseInput("n1", "u1", True),))
        await env.clock.advance(0.1)
        first = loop_harness.health("oak").renewed_at
        assert (first is not None, loop_harness.marked) == (True, ["oak"] * 2)
        loop_harness.change("oak", nodes=(NodeLeaseInput("n1", "u1", True), NodeLeaseInput("n2", "u2", True)))
        await env.clock.advance(0.1)
        assert loop_harness.health("oak").renewed_at == first
        env.wire.answers["n1"] = 500
        await env.rounds(2)
        assert loop_harness.health("oak").renewed_at == first


async def test_a_removed_leaf_is_neither_probed_nor_renewed(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        await env.rounds(1)
        loop_harness.known.drop("oak")
        await env.rounds(1)
        probes, writes = len(env.forest.leaves["oak"].requests), len(env.wire.requests)
        await env.rounds(3)
        assert (len(env.forest.leaves["oak"].requests), len(env.wire.requests)) == (probes, writes)
        assert loop_harness.health("oak") is None


@pytest.mark.parametrize("code", [403, 500, 422])
async def test_a_lease_that_cannot_be_written_concerns_itself_alone(env, code):
    env.harness.put("oak", b"oak first", "n1", "n2")
    async with env.keeping() as loop_harness:
        env.wire.answers["n1"] = code
        await env.rounds(2)
        assert loop_harness.health("oak").failed == (("n1", f"{code} as asked"),)
        assert (loop_harness.state("oak"), loop_harness.marked) == (State.ALIVE, ["oak", "oak"])
        assert await env.age("n2") <= 10.0
        del env.wire.answers["n1"]
        await env.rounds(1)
        assert (loop_harness.health("oak").failed, loop_harness.marked) == ((), ["oak"] * 3)
        assert await env.age("n1") <= 10.0


async def test_a_lost_response_is_confirmed_by_a_get(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        env.wire.lost.add("n1")
        await env.rounds(3)
        assert "the answer was lost" in dict(loop_harness.health("oak").failed)["n1"]
        assert loop_harness.health("oak").moved == ()
        env.wire.lost.clear()
        await env.rounds(1)
        assert loop_harness.health("oak").failed == ()
        before = len(env.wire.requests)
        await env.rounds(2)
        assert env.wire.requests[before:] == [("PATCH", "n1")] * 2


async def test_a_write_that_is_never_answered_ends_with_its_round(env):
    env.harness.put("oak", b"oak first", "n1", "n2")
    async with env.keeping() as loop_harness:
        env.wire.hanging.add("n1")
        await env.rounds(3)
        assert loop_harness.health("oak").failed == (("n1", LATE),)
        assert (loop_harness.state("oak"), loop_harness.health("oak").moved) == (State.ALIVE, ())
        assert await env.age("n2") <= 10.0
        env.wire.hanging.clear()
        await env.rounds(2)
        assert loop_harness.health("oak").failed == ()
        assert await env.age("n1") <= 10.0


async def move(env, node):
    """Renew the lease as another process does."""
    moment = env.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    await env.root.patch(LEASES, node, {"spec": {"renewTime": moment}}, LEASE_NAMESPACE)


async def test_another_process_that_renews_is_detected(env):
    env.harness.put("oak", b"oak first", "n1", "n2")
    async with env.keeping() as loop_harness:
        await env.clock.advance(3.0)
        for _ in range(3):
            await move(env, "n1")
            await env.rounds(1)
        assert loop_harness.health("oak").moved == ("n1",)
        assert loop_harness.health("oak").failed == ()


async def test_another_process_is_detected_while_writes_are_fenced_and_forgotten_when_gone(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        await env.clock.advance(3.0)
        for _ in range(3):
            await move(env, "n1")
            await env.rounds(1)
        loop_harness.gate.is_open = False
        for _ in range(6):
            await move(env, "n1")
            await env.rounds(1)
            assert loop_harness.health("oak").moved == ("n1",)
        left = await renew_time(env.root, "n1")
        await env.rounds(6)
        assert loop_harness.health("oak").moved == ()
        assert await renew_time(env.root, "n1") == left
        loop_harness.gate.is_open = True
        await env.rounds(1)
        assert await env.age("n1") <= 10.0


async def test_a_change_that_renews_nothing_is_no_move(env):
    env.harness.put("oak", b"oak first", "n1")
    async with env.keeping() as loop_harness:
        for number in range(4):
            labels = {"metadata": {"labels": {"touched": str(number)}}}
            await env.root.patch(LEASES, "n1", labels, LEASE_NAMESPACE)
            await env.rounds(1)
            assert await env.age("n1") <= 10.0
        assert loop_harness.health("oak").moved == ()


@pytest.mark.parametrize(("seconds", "is_moved"), [(5, True), (60, False)])
async def test_a_lease_of_a_node_that_kosmos_made_is_kosmos_while_it_is_fresh(env, seconds, is_moved):
    renewed = format_rfc3339_micro(env.clock.now() - timedelta(seconds=seconds))
    await env.root.create(LEASES, manifest("n1", "u1", renewed))
    env.harness.put("oak", b"oak first", ("n1", "u1", True, False))
    env.harness.gate.is_open = False
    async with env.keeping() as loop_harness:
        assert (loop_harness.health("oak").moved == ("n1",)) is is_moved
        assert await renew_time(env.root, "n1") == renewed
        await env.rounds(5)
        assert loop_harness.health("oak").moved == ()
