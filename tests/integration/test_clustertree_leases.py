"""Node leases over TLS, on both servers: a root, a leaf, and a faulty proxy to the leaf.

The loop runs on a clock that is five times as fast, so that three rounds take six seconds.
"""

import asyncio
import itertools
import json
from contextlib import ExitStack
from datetime import timedelta

import pytest
from tests.builders.lease_loop import LeaseLoopHarness, QuickClock, add_node, lease_of, renew_time
from tests.builders.operators import until
from tests.builders.remote_clusters import exec_kubeconfig

from nodeyard.capabilities.clustertree.leases.inputs import NodeLeaseInput
from nodeyard.capabilities.clustertree.leases.liveness import State
from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import LEASES, NODES
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.faults import Drop, FaultProxy, HalfOpen, Latency, Status

PATIENCE = 60.0
FAULTS = {"cut": Drop(), "hanging": HalfOpen(), "slow": Latency(3.0), "s500": Status(500), "s503": Status(503)}
ALL_LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create"]}

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def leaf(api):
    """A second server."""
    with ControlPlane() if api.is_real else EmbeddedServer() as server:
        yield server


@pytest.fixture
def wire(leaf):
    """A proxy between the loop and the leaf."""
    with wired(leaf) as proxy:
        yield proxy


def wired(leaf):
    return FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token)


class Env:
    """The root's nodes of one test, and the loop that keeps their leases; both are removed with the test."""

    def __init__(self, api):
        self.root = Client(HttpTransport(load_config(api.kubeconfig)))
        self.clock = QuickClock()
        self.harness = LeaseLoopHarness()
        self._prefix = f"leases-{next(_numbers)}"
        self._nodes = []

    def name(self, word):
        return f"{self._prefix}-{word}"

    async def add_node(self, word):
        """The input of the lease loop for the node."""
        name = self.name(word)
        if name not in self._nodes:
            self._nodes.append(name)
        return NodeLeaseInput(name, await add_node(self.root, name), True)

    def keeping(self, client=None):
        return self.harness.running(client or self.root, self.clock)

    async def is_in(self, cluster, state):
        async def is_so():
            return self.harness.state(cluster) is state

        await until(is_so, f"{cluster} is {state.value}, not {self.harness.health(cluster)}", PATIENCE)
        return self.harness.health(cluster)

    async def is_renewed(self, word):
        """Wait until the lease was renewed after now."""
        name = self.name(word)
        before = await renew_time(self.root, name)

        async def is_later():
            return await renew_time(self.root, name) not in (before, None)

        await until(is_later, f"the lease of {name} is renewed", PATIENCE)

    async def round_is_over(self, cluster):
        """Wait for one more round, whatever its result."""
        before = self.harness.health(cluster)

        async def is_another():
            return self.harness.health(cluster) is not before

        await until(is_another, f"{cluster} has had another round", PATIENCE)

    async def close(self):
        for name in self._nodes:
            for resource, namespace in ((NODES, ""), (LEASES, LEASE_NAMESPACE)):
                try:
                    await self.root.delete(resource, name, namespace)
                except NotFound:
                    continue
        await self.root.close()


@pytest.fixture
async def env(api):
    env = Env(api)
    yield env
    await env.close()


def wrong_token(leaf):
    config = json.loads(leaf.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "not-the-right-one"}
    return json.dumps(config).encode()


async def test_leases_are_made_and_renewed_for_a_leaf_that_answers(env, leaf):
    node = await env.add_node("n1")
    env.harness.put("oak", leaf.kubeconfig.read_bytes(), node)
    async with env.keeping():
        health = await env.is_in("oak", State.ALIVE)
        assert (health.failed, health.moved) == ((), ())
        made = await lease_of(env.root, node.name)
        assert made["spec"]["holderIdentity"] == node.name
        assert made["spec"]["leaseDurationSeconds"] == 40
        assert [each["uid"] for each in made["metadata"]["ownerReferences"]] == [node.uid]
        await env.is_renewed("n1")
        await env.is_renewed("n1")
        assert env.harness.marked == ["oak"]


async def test_the_clock_of_a_leaf_is_known(env, leaf):
    env.harness.put("oak", leaf.kubeconfig.read_bytes(), await env.add_node("n1"))
    async with env.keeping():
        health = await env.is_in("oak", State.ALIVE)
        # Our clock runs five times as fast here.
        assert -60.0 < health.skew_seconds < 2.0
        assert health.skew_seconds != 0.0


async def test_leaves_with_failing_probes_lose_their_leases_and_recover(env, leaf):
    """Runs all faults concurrently, since each takes several rounds."""
    with ExitStack() as stack:
        wires = {word: stack.enter_context(wired(leaf)) for word in FAULTS}
        nodes = {word: await env.add_node(word) for word in FAULTS}
        for word, wire in wires.items():
            env.harness.put(word, wire.kubeconfig.read_bytes(), nodes[word])
        async with env.keeping():
            await asyncio.gather(
                *(is_given_up_and_comes_back(env, word, wires[word], fault) for word, fault in FAULTS.items())
            )


async def is_given_up_and_comes_back(env, word, wire, fault):
    node = env.name(word)
    await env.is_in(word, State.ALIVE)
    wire.add(fault)
    await env.is_in(word, State.FAILING)
    before = await renew_time(env.root, node)
    health = await env.is_in(word, State.UNREACHABLE)
    assert health.message
    assert health.last_contact < health.since
    await env.round_is_over(word)
    assert await renew_time(env.root, node) == before
    wire.clear()
    await env.is_in(word, State.ALIVE)
    assert await renew_time(env.root, node) != before


async def test_a_leaf_that_is_restarted_is_taken_up_again(env, leaf):
    node = await env.add_node("n1")
    env.harness.put("oak", leaf.kubeconfig.read_bytes(), node)
    async with env.keeping():
        await env.is_in("oak", State.ALIVE)
        await asyncio.to_thread(leaf.kill)
        try:
            await env.is_in("oak", State.FAILING)
        finally:
            await asyncio.to_thread(leaf.restart)
        await env.is_in("oak", State.ALIVE)
        await env.is_renewed("n1")


async def test_a_leaf_that_rejects_us_is_renewed_until_the_credentials_are_right_again(env, leaf):
    env.harness.put("oak", wrong_token(leaf), await env.add_node("n1"))
    async with env.keeping() as loop_harness:
        health = await env.is_in("oak", State.REJECTING)
        assert "returned 401" in health.message
        await env.is_renewed("n1")
        loop_harness.change("oak", kubeconfig=leaf.kubeconfig.read_bytes())
        await env.is_in("oak", State.ALIVE)
        await env.is_renewed("n1")


async def test_a_leaf_that_rejects_us_for_too_long_is_given_up(env, wire):
    node = await env.add_node("n1")
    env.harness.put("oak", wire.kubeconfig.read_bytes(), node, credential_grace=timedelta(seconds=25))
    async with env.keeping():
        await env.is_in("oak", State.ALIVE)
        wire.add(Status(401))
        await env.is_in("oak", State.REJECTING)
        health = await env.is_in("oak", State.UNREACHABLE)
        assert health.is_rejected
        before = await renew_time(env.root, node.name)
        await env.round_is_over("oak")
        assert await renew_time(env.root, node.name) == before


async def test_one_leaf_that_hangs_delays_no_other(env, leaf, wire):
    wire.add(HalfOpen())
    env.harness.put("oak", wire.kubeconfig.read_bytes(), await env.add_node("n1"))
    env.harness.put("elm", leaf.kubeconfig.read_bytes(), await env.add_node("n2"))
    async with env.keeping():
        await env.is_in("oak", State.UNREACHABLE)
        await env.is_renewed("n2")
        assert env.harness.state("elm") is State.ALIVE
        assert await lease_of(env.root, env.name("n1")) is None


async def test_a_kubeconfig_that_would_run_a_program_is_refused(env, leaf):
    env.harness.put("evil", exec_kubeconfig(leaf.url).encode(), await env.add_node("n1"))
    async with env.keeping():
        health = await env.is_in("evil", State.UNREACHABLE)
        assert "commands are not allowed in this kubeconfig" in health.message


async def test_a_recreated_node_gets_its_lease_back(env, leaf):
    node = await env.add_node("n1")
    env.harness.put("oak", leaf.kubeconfig.read_bytes(), node)
    async with env.keeping() as loop_harness:
        await env.is_in("oak", State.ALIVE)
        await env.root.delete(NODES, node.name)
        again = await env.add_node("n1")
        loop_harness.change("oak", nodes=(again,))

        async def is_owned():
            found = await lease_of(env.root, node.name)
            return found and [each["uid"] for each in found["metadata"]["ownerReferences"]] == [again.uid]

        await until(is_owned, "the lease belongs to the new node", PATIENCE)
        await env.is_renewed("n1")


async def test_a_forbidden_lease_affects_no_other_lease(env, api, leaf):
    first, second = await env.add_node("n1"), await env.add_node("n2")
    one = {**ALL_LEASES, "verbs": ["patch"], "resourceNames": [first.name]}
    narrow = api.user(env.name("narrow"), rules=[ALL_LEASES, one])
    env.harness.put("oak", leaf.kubeconfig.read_bytes(), first, second)
    client = Client(HttpTransport(load_config(narrow)))
    async with env.keeping(client) as loop_harness:

        async def is_told():
            found = loop_harness.health("oak")
            return found and dict(found.failed)

        failed = await until(is_told, "the failure is told", PATIENCE)
        assert list(failed) == [second.name]
        assert 'cannot patch resource "leases"' in failed[second.name]
        await env.is_renewed("n1")
    await client.close()


async def test_another_process_that_renews_a_lease_is_detected(env, leaf):
    node = await env.add_node("n1")
    env.harness.put("oak", leaf.kubeconfig.read_bytes(), node)
    async with env.keeping() as loop_harness:
        await env.is_in("oak", State.ALIVE)

        async def is_moved():
            moment = f"2026-01-01T00:00:00.{next(_numbers):06d}Z"
            await env.root.patch(LEASES, node.name, {"spec": {"renewTime": moment}}, LEASE_NAMESPACE)
            return loop_harness.health("oak").moved == (node.name,)

        await until(is_moved, "the other is noticed", PATIENCE)
        loop_harness.gate.is_open = False
        await env.round_is_over("oak")
        left = await renew_time(env.root, node.name)
        await env.round_is_over("oak")
        assert await renew_time(env.root, node.name) == left
