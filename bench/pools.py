"""Pools on a real kube-apiserver with Cluster API's real definitions and none of its managers: what clusters cost.

cold        200 LatticeClusters of 10 pools, created at once. Beside the operator stands its ceiling: the very bodies it
            sent, replayed raw at the same concurrency on a fresh server like the first, a namespace before what is in
            it. The time is taken by another watcher of MachineDeployments, which both have alike, from the first
            LatticeCluster (the first body) to the last MachineDeployment it sees whole.
resync      the operator starts anew on what it made: every cluster is planned, nothing is written but its lease.
one change  of one pool of all of them, in place: its MachineDeployment is written, its LatticeCluster's status, and
            nothing else.

Admission webhooks are off: the server of the ceiling has none.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench import pools_fleet as fleet
from bench.harness import Contestant, Numbers, Requirement, Result, compete
from bench.load import Call, session
from bench.operator import Operator, operator
from bench.pools_fleet import Cost
from bench.replay import replayer, unbound
from bench.servers import Running, cpu_seconds, real
from nodeyard.apply.applier import IN_FLIGHT
from nodeyard.capabilities.pools import names

OPERATOR = "operator"
CEILING = "ceiling"
CLUSTERS, POOLS = 200, 10
ROUNDS = 3
PATIENCE_SECONDS = 900.0

SECONDS = "seconds until all pools are applied"
WRITES = "writes"
WRITES_PER_POOL = "writes per pool"
DEPLOYMENTS = "writes of MachineDeployments"
STATUSES = "status writes"
EVENTS = "event writes"
CPU = "CPU seconds"
SERVER_CPU = "CPU seconds of the server meanwhile"
MEMORY = "peak memory, MB"

RESYNC_WRITES = "API writes of a resync"
RESYNC_PLANS = "plans of a resync"
RESYNC_CPU = "CPU seconds of a start and its resync"


@dataclass(frozen=True)
class Change:
    """Of one pool, and how many writes of its MachineDeployment that is worth."""

    name: str
    cluster: int
    fields: Mapping[str, Any]
    worth: int

    @property
    def own(self) -> str:
        return f"{self.name}: writes of the pool's MachineDeployment"

    @property
    def others(self) -> str:
        return f"{self.name}: writes of other objects"


POOL = 1
"""The one that is changed."""
SCALED, BARE = 0, 1
"""The cluster whose control plane has come up, and one that has none yet."""
CHANGES = (
    Change("label", BARE, {"labels": {fleet.IN_PLACE: "second"}}, 1),
    Change("displayName", BARE, {"displayName": "Another"}, 0),
    Change("replicas", SCALED, {"replicas": 7}, 1),
)


def run(clusters: int = CLUSTERS, pools: int = POOLS, rounds: int = ROUNDS) -> Iterator[Result]:
    size, sent = Size(clusters, pools), Sent()
    yield compete(
        f"pools-cold-{clusters}x{pools}",
        [
            Contestant(OPERATOR, lambda: asyncio.run(_generate(size, sent))),
            Contestant(CEILING, lambda: asyncio.run(_replay(size, sent))),
        ],
        requirements=[Requirement(SECONDS, OPERATOR, CEILING, at_most=1.5)],
        rounds=rounds,
        warm_up=False,
    )
    yield compete(
        "pools-changes",
        [Contestant(OPERATOR, lambda: asyncio.run(_change(size)))],
        requirements=[
            Requirement(RESYNC_WRITES, OPERATOR, at_most=0),
            Requirement(RESYNC_PLANS, OPERATOR, at_least=clusters),
            *(Requirement(each.others, OPERATOR, at_most=0) for each in CHANGES),
            *(Requirement(each.own, OPERATOR, at_least=each.worth, at_most=each.worth) for each in CHANGES),
        ],
        rounds=1,
        warm_up=False,
    )


@dataclass(frozen=True)
class Size:
    clusters: int
    pools: int

    @property
    def all_pools(self) -> int:
        return self.clusters * self.pools


@dataclass
class Sent:
    """What the operator wrote when it last started from nothing."""

    calls: Sequence[Call] = field(default_factory=list)


# one run of each


async def _generate(size: Size, sent: Sent) -> Numbers:
    async with _server() as (server, opened):
        with _operator(server) as running:
            async with fleet.applied(opened) as applied:
                server_cpu = cpu_seconds(server.processes)
                cpu, began = running.cpu_seconds(), time.perf_counter()
                await fleet.ask(opened, size.clusters, size.pools)
                ended = await applied.reach(size.all_pools, PATIENCE_SECONDS)
                server_cpu = cpu_seconds(server.processes) - server_cpu
            await _settle(opened, running, size)
            cpu, peak = running.cpu_seconds() - cpu, running.peak_mb()
            sent.calls = await running.written()
    return _numbers(ended - began, sent.calls, size) | {CPU: cpu, SERVER_CPU: server_cpu, MEMORY: peak}


async def _replay(size: Size, sent: Sent) -> Numbers:
    calls = list(map(unbound, sent.calls))
    async with _server() as (server, opened):
        await fleet.ask(opened, size.clusters, size.pools)
        with replayer() as replay:
            async with fleet.applied(opened) as applied:
                server_cpu = cpu_seconds(server.processes)
                replayed = await asyncio.to_thread(replay, server.target, calls, IN_FLIGHT)
                ended = await applied.reach(size.all_pools, PATIENCE_SECONDS)
                server_cpu = cpu_seconds(server.processes) - server_cpu
    cost = {CPU: replayed.cpu_seconds, SERVER_CPU: server_cpu, MEMORY: replayed.peak_mb}
    return _numbers(ended - replayed.began, calls, size) | cost


async def _change(size: Size) -> Numbers:
    async with _server() as (server, opened):
        with _operator(server) as running:
            await fleet.ask(opened, size.clusters, size.pools)
            await _settle(opened, running, size)
        with _operator(server) as running:
            numbers = await _resync(opened, running, size)
            await fleet.initialize(opened, SCALED)
            await _settle(opened, running, size, lambda: fleet.are_scaled(opened, SCALED, size.pools))
            for change in CHANGES:
                numbers |= await _cost(opened, running, size, change)
            return numbers | {MEMORY: running.peak_mb()}


async def _cost(opened: aiohttp.ClientSession, running: Operator, size: Size, change: Change) -> Numbers:
    known = len(await running.written())
    await fleet.change(opened, change.cluster, POOL, change.fields)
    await _settle(opened, running, size)
    cost = Cost.of((await running.written())[known:], change.cluster, POOL)
    return {
        change.own: cost.pool,
        f"{change.name}: status writes": cost.statuses,
        f"{change.name}: event writes": cost.events,
        change.others: cost.others,
    }


async def _resync(opened: aiohttp.ClientSession, running: Operator, size: Size) -> Numbers:
    """It has just started: all that it knows is what it was told."""
    await _settle(opened, running, size)
    counters = running.counters()
    return {RESYNC_WRITES: counters.writes, RESYNC_PLANS: counters.plans, RESYNC_CPU: running.cpu_seconds()}


# around them


@asynccontextmanager
async def _server() -> AsyncIterator[tuple[Running, aiohttp.ClientSession]]:
    """A fresh one that knows the kinds and has none of them."""
    with real() as server:
        print("pools: installing definitions on a server", file=sys.stderr)
        await fleet.install(server)
        async with session(server.target, fleet.IN_FLIGHT + 8) as opened:
            yield server, opened


@contextmanager
def _operator(server: Running) -> Iterator[Operator]:
    with (
        tempfile.TemporaryDirectory() as folder,
        operator(server.kubeconfig, Path(folder), names.CAPABILITY) as running,
    ):
        yield running


async def _true() -> bool:
    return True


async def _settle(
    opened: aiohttp.ClientSession, running: Operator, size: Size, is_done: Callable[[], Awaitable[bool]] = _true
) -> None:
    """Until every cluster was planned and reports on its spec, and a second has passed without a write or a plan."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        before = (-1.0, -1.0)
        while True:
            counters, reported = running.counters(), await fleet.reported(opened)
            current = (counters.writes, counters.plans)
            if reported == size.clusters <= counters.plans and current == before and await is_done():
                return
            before = current
            await asyncio.sleep(1)


def _numbers(seconds: float, calls: Sequence[Call], size: Size) -> Numbers:
    counted = fleet.by_resource(calls)
    return {
        SECONDS: seconds,
        WRITES: len(calls),
        WRITES_PER_POOL: len(calls) / size.all_pools,
        DEPLOYMENTS: counted["machinedeployments"],
        STATUSES: counted[f"{names.CLUSTER_PLURAL}/status"],
        EVENTS: counted["events"],
    }
