"""Spares on a real kube-apiserver: how fast it converges, reacts and rests, and what it costs.

convergence   1,000 and 5,000 spares, ten templates that want them all, created at once. Beside the operator stands its
              ceiling: the very bodies it sent, replayed raw at the same concurrency on a fresh fleet like the first.
              The time is taken by another watcher of nodes, which both have alike, from the first template (the first
              body) to the last claim it sees.
reaction      200 spares arrive one by one while 5,000 nodes post status at 20 a second: from sending the node to the
              claim as another watcher sees it.
steady state  nothing but heartbeats: no API write but for the leader's own lease, no plan.

The Go peer nyallocator v1.2.3 converges 1,000 nodes beside them where its module can be had; where it cannot, one line
says why, and the table carries what is known of it from another run, marked as quoted.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import aiohttp

from bench import peer
from bench import spares_fleet as fleet
from bench.harness import Contestant, Numbers, Requirement, Result, compete
from bench.load import Call, encoded, send, session
from bench.operator import Operator, operator, peak_mb
from bench.replay import NODES, Tally, replayer, retargeted
from bench.servers import Running, cpu_seconds, real
from bench.sightings import Sightings
from nodeyard.apply.applier import IN_FLIGHT
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.crds import install
from nodeyard.testing.processes import Process

OPERATOR = "operator"
CEILING = "ceiling"
# Odd, so that one round that somebody else disturbed does not count.
ROUNDS = {1_000: 3, 5_000: 3}
SMALL, LARGE = 1_000, 5_000
ARRIVALS = 200
HEARTBEATS = 20.0
STEADY_SECONDS = 10.0

SECONDS = "seconds until all are claimed"
CLAIMED = "nodes claimed"
WRITES_PER_NODE = "writes per node"
PLANS_PER_NODE = "plans per node"
STATUSES = "status writes"
TEMPLATE_WRITES = "finalizer writes"
EVENTS = "event writes"
CPU = "CPU seconds"
SERVER_CPU = "CPU seconds of the server meanwhile"
MEMORY = "peak memory, MB"

MEDIAN, P99, SLOWEST = (f"reaction, {each}, ms" for each in ("median", "99th percentile", "slowest"))
STEADY_WRITES = "API writes in the steady state"
STEADY_PLANS = "plans in the steady state"
STEADY_CPU = "CPU in the steady state, % of one core"
STEADY_BEATS = "heartbeats in the steady state"


def run() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        built = peer.build(Path(folder))
        print(built.line())
        for nodes, rounds in ROUNDS.items():
            result = _convergence(nodes, rounds)
            result.notes = () if built.binary else (built.line(), peer.QUOTED)
            yield result
        if binary := built.binary:
            contestant = Contestant(peer.NAME, lambda: asyncio.run(_converge_peer(SMALL, binary)))
            yield compete(f"spares-peer-{SMALL}", [contestant], rounds=1, warm_up=False)
    yield compete(
        "spares-reaction",
        [Contestant(OPERATOR, lambda: asyncio.run(_react(LARGE)))],
        requirements=[
            Requirement(P99, OPERATOR, at_most=200),
            Requirement(WRITES_PER_NODE, OPERATOR, at_most=1),
            Requirement(STEADY_WRITES, OPERATOR, at_most=0),
            Requirement(STEADY_PLANS, OPERATOR, at_most=0),
            Requirement(MEMORY, OPERATOR, at_most=150),
        ],
        warm_up=False,
    )


def _convergence(nodes: int, rounds: int) -> Result:
    sent = Sent()
    return compete(
        f"spares-convergence-{nodes}",
        [
            Contestant(OPERATOR, lambda: asyncio.run(_converge(nodes, sent))),
            Contestant(CEILING, lambda: asyncio.run(_replay(nodes, sent))),
        ],
        requirements=[
            Requirement(SECONDS, OPERATOR, CEILING, at_most=1.25),
            Requirement(WRITES_PER_NODE, OPERATOR, at_most=1),
            Requirement(MEMORY, OPERATOR, at_most=150),
        ],
        rounds=rounds,
        warm_up=False,
    )


@dataclass
class Sent:
    """What the operator wrote when it last converged."""

    calls: Sequence[Call] = field(default_factory=list)


# one run of each


async def _converge(nodes: int, sent: Sent) -> Numbers:
    async with _cluster(nodes) as (server, opened):
        with _operator(server) as running:
            async with fleet.claims(opened) as claims:
                server_cpu = cpu_seconds(server.processes)
                cpu, began = running.cpu_seconds(), time.perf_counter()
                await fleet.ask(opened, nodes)
                ended = await claims.reach(nodes)
                server_cpu = cpu_seconds(server.processes) - server_cpu
                await _settle(opened, running, nodes)
            cpu, peak = running.cpu_seconds() - cpu, running.peak_mb()
            sent.calls = await running.written()
    return _numbers(ended - began, sent.calls, nodes) | {CPU: cpu, SERVER_CPU: server_cpu, MEMORY: peak}


async def _converge_peer(nodes: int, binary: Path) -> Numbers:
    """As it comes: one replica, no limits, on the same fleet and templates."""
    async with _cluster(nodes) as (server, opened):
        with tempfile.TemporaryDirectory() as folder:
            process = Process(peer.NAME, Path(folder) / "peer.log")
            process.start([binary, "--kubeconfig", server.kubeconfig, "--health-probe-bind-address", "0"])
            try:
                async with fleet.claims(opened) as claims:
                    began = time.perf_counter()
                    await fleet.ask(opened, nodes)
                    with contextlib.suppress(TimeoutError):
                        await claims.reach(nodes, peer.PATIENCE_SECONDS)
                    ended = time.perf_counter()
                    cost = {CPU: cpu_seconds([process.pid]), MEMORY: peak_mb(process.pid)}
            finally:
                process.stop()
    return {SECONDS: ended - began, CLAIMED: len(claims.seen), **cost}


async def _replay(nodes: int, sent: Sent) -> Numbers:
    async with _cluster(nodes) as (server, opened):
        await fleet.ask(opened, nodes)
        calls = retargeted(sent.calls, await fleet.metadata(opened))
        with replayer() as replay:
            async with fleet.claims(opened) as claims:
                server_cpu = cpu_seconds(server.processes)
                replayed = await asyncio.to_thread(replay, server.target, calls, IN_FLIGHT)
                ended = await claims.reach(nodes)
                server_cpu = cpu_seconds(server.processes) - server_cpu
    cost = {CPU: replayed.cpu_seconds, SERVER_CPU: server_cpu, MEMORY: replayed.peak_mb}
    return _numbers(ended - replayed.began, calls, nodes) | cost


async def _react(nodes: int) -> Numbers:
    async with _cluster(nodes) as (server, opened):
        with _operator(server) as running:
            async with fleet.claims(opened) as claims:
                await fleet.ask(opened, nodes, further=ARRIVALS)
                await claims.reach(nodes)
                await _settle(opened, running, nodes)
                async with fleet.heartbeats(opened, nodes, HEARTBEATS) as beats:
                    rested = await _rest(running, beats)
                    known, plans = len(await running.written()), running.counters().plans
                    waits = await _arrivals(opened, claims)
                await _settle(opened, running, nodes + ARRIVALS)
            plans = running.counters().plans - plans
            tally, peak = Tally.of((await running.written())[known:]), running.peak_mb()
    waits.sort()
    return {
        MEDIAN: waits[len(waits) // 2] * 1000,
        P99: waits[math.ceil(len(waits) * 0.99) - 1] * 1000,
        SLOWEST: waits[-1] * 1000,
        PLANS_PER_NODE: plans / ARRIVALS,
        WRITES_PER_NODE: tally.nodes / ARRIVALS,
        STATUSES: tally.statuses,
        EVENTS: tally.events,
        **rested,
        MEMORY: peak,
    }


async def _rest(running: Operator, beats: Iterator[int]) -> Numbers:
    before, cpu, first = running.counters(), running.cpu_seconds(), next(beats)
    await asyncio.sleep(STEADY_SECONDS)
    after = running.counters()
    return {
        STEADY_BEATS: next(beats) - first - 1,
        STEADY_WRITES: after.writes - before.writes,
        STEADY_PLANS: after.plans - before.plans,
        STEADY_CPU: (running.cpu_seconds() - cpu) / STEADY_SECONDS * 100,
    }


async def _arrivals(opened: aiohttp.ClientSession, claims: Sightings) -> list[float]:
    """One after another at irregular moments, about five a second; how long each waited."""
    random = Random(1)
    sent: dict[str, float] = {}
    for number in range(ARRIVALS):
        node = fleet.newcomer(number)
        body = encoded(node)
        sent[node["metadata"]["name"]] = time.perf_counter()
        await send(opened, [Call("POST", NODES, body)], 1)
        await asyncio.sleep(random.uniform(0.1, 0.3))
    await claims.reach(len(claims.seen.keys() | sent.keys()))
    return [claims.seen[name] - began for name, began in sent.items()]


# around them


@asynccontextmanager
async def _cluster(nodes: int) -> AsyncIterator[tuple[Running, aiohttp.ClientSession]]:
    """A fresh server with this many spares and no template yet."""
    with real() as server:
        await _install(server)
        print(f"spares: filling a server with {nodes:,} nodes", file=sys.stderr)
        async with session(server.target, fleet.IN_FLIGHT + 8) as opened:
            await fleet.fill(opened, nodes)
            yield server, opened


async def _install(server: Running) -> None:
    client = Client(HttpTransport(load_kubeconfig([server.kubeconfig])))
    try:
        await install(client, [SPARES], SystemClock())
    finally:
        await client.close()


@contextmanager
def _operator(server: Running) -> Iterator[Operator]:
    with tempfile.TemporaryDirectory() as folder, operator(server.kubeconfig, Path(folder)) as running:
        yield running


async def _settle(opened: aiohttp.ClientSession, running: Operator, nodes: int) -> None:
    """Until the templates say what they have, and a second has passed without a write."""
    async with asyncio.timeout(fleet.SECONDS):
        before = -1.0
        while True:
            writes, claimed = running.counters().writes, await fleet.claimed_by_status(opened)
            if claimed == nodes and writes == before:
                return
            before = writes
            await asyncio.sleep(1)


def _numbers(seconds: float, calls: Sequence[Call], nodes: int) -> Numbers:
    tally = Tally.of(calls)
    return {
        SECONDS: seconds,
        WRITES_PER_NODE: tally.nodes / nodes,
        STATUSES: tally.statuses,
        TEMPLATE_WRITES: tally.templates,
        EVENTS: tally.events,
    }
