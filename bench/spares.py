"""Spares on a real kube-apiserver: convergence, reaction time, steady state, and their cost.

convergence   1,000 and 5,000 spares and ten templates that want all of them, created at once. The operator is compared
              with its ceiling: its recorded writes, replayed raw at the same concurrency on a fresh fleet. An
              independent watch on nodes takes the time in both cases, from the first template (the first replayed
              write) to the last claim.
reaction      200 spares arrive one by one while 5,000 nodes post 20 heartbeats a second. Measured from the node's POST
              to its claim as the watch shows it.
steady state  heartbeats only: no plan, and no API write except of the leader's Lease.

The Go peer nyallocator v1.2.3 converges 1,000 nodes in the same run if its module can be built. If not, one line says
why, and the table quotes its numbers from another run.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import aiohttp

from bench import peer
from bench import spares_fleet as fleet
from bench.harness import Contestant, Numbers, Requirement, Result, compare
from bench.load import Call, connect, encode, send_all
from bench.observer import Observer
from bench.operator import Operator, peak_mb, run_operator
from bench.replay import NODES, WriteCounts, replayer, retarget
from bench.servers import RunningServer, cpu_seconds, install_crds, real
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.client.flow_control import IN_FLIGHT
from nodeyard.testing.processes import Process

OPERATOR = "operator"
CEILING = "ceiling"
# An odd number, so that one disturbed round does not change the median.
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
            yield compare(f"spares-peer-{SMALL}", [contestant], rounds=1, warm_up=False)
    yield compare(
        "spares-reaction",
        [Contestant(OPERATOR, lambda: asyncio.run(_measure_reaction(LARGE)))],
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
    return compare(
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
    """The operator's writes of the latest convergence."""

    calls: Sequence[Call] = field(default_factory=list)


# runs


async def _converge(nodes: int, sent: Sent) -> Numbers:
    async with _cluster(nodes) as (server, session):
        with run_operator(server.kubeconfig, SPARES.name) as operator:
            async with fleet.observe_claims(session) as claims:
                server_cpu = cpu_seconds(server.processes)
                cpu, began = operator.cpu_seconds(), time.perf_counter()
                await fleet.create_templates(session, nodes)
                ended = await claims.wait_for(nodes)
                server_cpu = cpu_seconds(server.processes) - server_cpu
                await _wait_until_idle(session, operator, nodes)
            cpu, peak = operator.cpu_seconds() - cpu, operator.peak_mb()
            sent.calls = await operator.recorded_writes()
    return _numbers(ended - began, sent.calls, nodes) | {CPU: cpu, SERVER_CPU: server_cpu, MEMORY: peak}


async def _converge_peer(nodes: int, binary: Path) -> Numbers:
    """Run the peer with its defaults (one replica, no limits) on the same fleet and templates."""
    async with _cluster(nodes) as (server, session):
        with tempfile.TemporaryDirectory() as folder:
            process = Process(peer.NAME, Path(folder) / "peer.log")
            process.start([binary, "--kubeconfig", server.kubeconfig, "--health-probe-bind-address", "0"])
            try:
                async with fleet.observe_claims(session) as claims:
                    began = time.perf_counter()
                    await fleet.create_templates(session, nodes)
                    with contextlib.suppress(TimeoutError):
                        await claims.wait_for(nodes, peer.TIMEOUT_SECONDS)
                    ended = time.perf_counter()
                    cost = {CPU: cpu_seconds([process.pid or 0]), MEMORY: peak_mb(process.pid)}
            finally:
                process.stop()
    return {SECONDS: ended - began, CLAIMED: len(claims.first_seen), **cost}


async def _replay(nodes: int, sent: Sent) -> Numbers:
    async with _cluster(nodes) as (server, session):
        await fleet.create_templates(session, nodes)
        calls = retarget(sent.calls, await fleet.metadata(session))
        with replayer() as replay:
            async with fleet.observe_claims(session) as claims:
                server_cpu = cpu_seconds(server.processes)
                replayed = await asyncio.to_thread(replay, server.target, calls, IN_FLIGHT)
                ended = await claims.wait_for(nodes)
                server_cpu = cpu_seconds(server.processes) - server_cpu
    cost = {CPU: replayed.cpu_seconds, SERVER_CPU: server_cpu, MEMORY: replayed.peak_mb}
    return _numbers(ended - replayed.began, calls, nodes) | cost


async def _measure_reaction(nodes: int) -> Numbers:
    async with _cluster(nodes) as (server, session):
        with run_operator(server.kubeconfig, SPARES.name) as operator:
            async with fleet.observe_claims(session) as claims:
                await fleet.create_templates(session, nodes, further=ARRIVALS)
                await claims.wait_for(nodes)
                await _wait_until_idle(session, operator, nodes)
                async with fleet.heartbeats(session, nodes, HEARTBEATS) as beats:
                    steady = await _measure_steady_state(operator, beats)
                    known, plans = len(await operator.recorded_writes()), operator.counters().plans
                    waits = await _arrivals(session, claims)
                await _wait_until_idle(session, operator, nodes + ARRIVALS)
            plans = operator.counters().plans - plans
            counts, peak = WriteCounts.of((await operator.recorded_writes())[known:]), operator.peak_mb()
    waits.sort()
    return {
        MEDIAN: waits[len(waits) // 2] * 1000,
        P99: waits[math.ceil(len(waits) * 0.99) - 1] * 1000,
        SLOWEST: waits[-1] * 1000,
        PLANS_PER_NODE: plans / ARRIVALS,
        WRITES_PER_NODE: counts.nodes / ARRIVALS,
        STATUSES: counts.statuses,
        EVENTS: counts.events,
        **steady,
        MEMORY: peak,
    }


async def _measure_steady_state(operator: Operator, beats: Iterator[int]) -> Numbers:
    before, cpu, first = operator.counters(), operator.cpu_seconds(), next(beats)
    await asyncio.sleep(STEADY_SECONDS)
    after = operator.counters()
    return {
        STEADY_BEATS: next(beats) - first - 1,
        STEADY_WRITES: after.writes - before.writes,
        STEADY_PLANS: after.plans - before.plans,
        STEADY_CPU: (operator.cpu_seconds() - cpu) / STEADY_SECONDS * 100,
    }


async def _arrivals(session: aiohttp.ClientSession, claims: Observer) -> list[float]:
    """Create nodes at random intervals, about five a second; return how long each waited for its claim."""
    random = Random(1)
    sent: dict[str, float] = {}
    for number in range(ARRIVALS):
        node = fleet.newcomer(number)
        body = encode(node)
        sent[node["metadata"]["name"]] = time.perf_counter()
        await send_all(session, [Call("POST", NODES, body)], 1)
        await asyncio.sleep(random.uniform(0.1, 0.3))
    await claims.wait_for(len(claims.first_seen.keys() | sent.keys()))
    return [claims.first_seen[name] - began for name, began in sent.items()]


# setup


@asynccontextmanager
async def _cluster(nodes: int) -> AsyncIterator[tuple[RunningServer, aiohttp.ClientSession]]:
    """Start a fresh server with spares and no templates."""
    with real() as server:
        await install_crds(server, SPARES)
        print(f"spares: filling a server with {nodes:,} nodes", file=sys.stderr)
        async with connect(server.target, fleet.IN_FLIGHT + 8) as session:
            await fleet.fill(session, nodes)
            yield server, session


async def _wait_until_idle(session: aiohttp.ClientSession, operator: Operator, nodes: int) -> None:
    """Wait until the statuses of templates count all nodes, and a second passes without a write."""
    async with asyncio.timeout(fleet.TIMEOUT_SECONDS):
        before = -1.0
        while True:
            writes, claimed = operator.counters().writes, await fleet.claimed_by_status(session)
            if claimed == nodes and writes == before:
                return
            before = writes
            await asyncio.sleep(1)


def _numbers(seconds: float, calls: Sequence[Call], nodes: int) -> Numbers:
    counts = WriteCounts.of(calls)
    return {
        SECONDS: seconds,
        WRITES_PER_NODE: counts.nodes / nodes,
        STATUSES: counts.statuses,
        TEMPLATE_WRITES: counts.templates,
        EVENTS: counts.events,
    }
