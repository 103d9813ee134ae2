"""Pools on a real kube-apiserver with Cluster API's real CRDs and none of its controllers.

cold        200 LatticeClusters of 10 pools, created at once. The operator is compared with its ceiling: its recorded
            writes, replayed raw at the same concurrency on a fresh server. An independent watch on MachineDeployments
            takes the time in both cases, from the first LatticeCluster (the first replayed write) to the last complete
            MachineDeployment.
resync      the operator restarts on what it generated: it plans every cluster and writes nothing but its Lease.
one change  to one pool, in place: it writes that MachineDeployment, the LatticeCluster's status, and nothing else.

Admission webhooks are off, because the ceiling's server has none.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench import pools_fleet as fleet
from bench.harness import Contestant, Numbers, Requirement, Result, compare
from bench.load import Call, connect
from bench.operator import Operator, run_operator
from bench.pools_fleet import Cost
from bench.replay import drop_preconditions, replayer
from bench.servers import RunningServer, cpu_seconds, real
from nodeyard.capabilities.pools import names
from nodeyard.client.flow_control import IN_FLIGHT

OPERATOR = "operator"
CEILING = "ceiling"
CLUSTERS, POOLS = 200, 10
ROUNDS = 3
TIMEOUT_SECONDS = 900.0

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
    """A change of one pool, and the number of writes of its MachineDeployment that it should cause."""

    name: str
    cluster: int
    fields: Mapping[str, Any]
    expected_writes: int

    @property
    def own(self) -> str:
        return f"{self.name}: writes of the pool's MachineDeployment"

    @property
    def others(self) -> str:
        return f"{self.name}: writes of other objects"


POOL = 1
"""Number of the changed pool."""
SCALED, BARE = 0, 1
"""Numbers of a cluster with an initialized control plane, and of one without."""
CHANGES = (
    Change("label", BARE, {"labels": {fleet.IN_PLACE: "second"}}, 1),
    Change("displayName", BARE, {"displayName": "Another"}, 0),
    Change("replicas", SCALED, {"replicas": 7}, 1),
)


def run(clusters: int = CLUSTERS, pools: int = POOLS, rounds: int = ROUNDS) -> Iterator[Result]:
    size, sent = Size(clusters, pools), Sent()
    yield compare(
        f"pools-cold-{clusters}x{pools}",
        [
            Contestant(OPERATOR, lambda: asyncio.run(_generate(size, sent))),
            Contestant(CEILING, lambda: asyncio.run(_replay(size, sent))),
        ],
        requirements=[Requirement(SECONDS, OPERATOR, CEILING, at_most=1.5)],
        rounds=rounds,
        warm_up=False,
    )
    yield compare(
        "pools-changes",
        [Contestant(OPERATOR, lambda: asyncio.run(_change(size)))],
        requirements=[
            Requirement(RESYNC_WRITES, OPERATOR, at_most=0),
            Requirement(RESYNC_PLANS, OPERATOR, at_least=clusters),
            *(Requirement(each.others, OPERATOR, at_most=0) for each in CHANGES),
            *(
                Requirement(each.own, OPERATOR, at_least=each.expected_writes, at_most=each.expected_writes)
                for each in CHANGES
            ),
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
    """The operator's writes of the latest cold start."""

    calls: Sequence[Call] = field(default_factory=list)


# runs


async def _generate(size: Size, sent: Sent) -> Numbers:
    async with _server() as (server, session):
        with run_operator(server.kubeconfig, names.CAPABILITY) as operator:
            async with fleet.observe_applied(session) as applied:
                server_cpu = cpu_seconds(server.processes)
                cpu, began = operator.cpu_seconds(), time.perf_counter()
                await fleet.create_clusters(session, size.clusters, size.pools)
                ended = await applied.wait_for(size.all_pools, TIMEOUT_SECONDS)
                server_cpu = cpu_seconds(server.processes) - server_cpu
            await _wait_until_idle(session, operator, size)
            cpu, peak = operator.cpu_seconds() - cpu, operator.peak_mb()
            sent.calls = await operator.recorded_writes()
    return _numbers(ended - began, sent.calls, size) | {CPU: cpu, SERVER_CPU: server_cpu, MEMORY: peak}


async def _replay(size: Size, sent: Sent) -> Numbers:
    calls = list(map(drop_preconditions, sent.calls))
    async with _server() as (server, session):
        await fleet.create_clusters(session, size.clusters, size.pools)
        with replayer() as replay:
            async with fleet.observe_applied(session) as applied:
                server_cpu = cpu_seconds(server.processes)
                replayed = await asyncio.to_thread(replay, server.target, calls, IN_FLIGHT)
                ended = await applied.wait_for(size.all_pools, TIMEOUT_SECONDS)
                server_cpu = cpu_seconds(server.processes) - server_cpu
    cost = {CPU: replayed.cpu_seconds, SERVER_CPU: server_cpu, MEMORY: replayed.peak_mb}
    return _numbers(ended - replayed.began, calls, size) | cost


async def _change(size: Size) -> Numbers:
    async with _server() as (server, session):
        with run_operator(server.kubeconfig, names.CAPABILITY) as operator:
            await fleet.create_clusters(session, size.clusters, size.pools)
            await _wait_until_idle(session, operator, size)
        with run_operator(server.kubeconfig, names.CAPABILITY) as operator:
            numbers = await _resync(session, operator, size)
            await fleet.initialize(session, SCALED)
            await _wait_until_idle(session, operator, size, lambda: fleet.are_scaled(session, SCALED, size.pools))
            for change in CHANGES:
                numbers |= await _cost(session, operator, size, change)
            return numbers | {MEMORY: operator.peak_mb()}


async def _cost(session: aiohttp.ClientSession, operator: Operator, size: Size, change: Change) -> Numbers:
    known = len(await operator.recorded_writes())
    await fleet.change(session, change.cluster, POOL, change.fields)
    await _wait_until_idle(session, operator, size)
    cost = Cost.of((await operator.recorded_writes())[known:], change.cluster, POOL)
    return {
        change.own: cost.pool,
        f"{change.name}: status writes": cost.statuses,
        f"{change.name}: event writes": cost.events,
        change.others: cost.others,
    }


async def _resync(session: aiohttp.ClientSession, operator: Operator, size: Size) -> Numbers:
    """Measure the first plans of a restarted operator."""
    await _wait_until_idle(session, operator, size)
    counters = operator.counters()
    return {RESYNC_WRITES: counters.writes, RESYNC_PLANS: counters.plans, RESYNC_CPU: operator.cpu_seconds()}


# setup


@asynccontextmanager
async def _server() -> AsyncIterator[tuple[RunningServer, aiohttp.ClientSession]]:
    """Start a server with the CRDs installed."""
    with real() as server:
        print("pools: installing CRDs", file=sys.stderr)
        await fleet.install(server)
        async with connect(server.target, fleet.IN_FLIGHT + 8) as session:
            yield server, session


async def _wait_until_idle(
    session: aiohttp.ClientSession,
    operator: Operator,
    size: Size,
    is_done: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Wait until all clusters are planned and their status is current, and a second passes without a write or plan."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        before = (-1.0, -1.0)
        while True:
            counters, reported = operator.counters(), await fleet.count_reported(session)
            current = (counters.writes, counters.plans)
            if (
                reported == size.clusters <= counters.plans
                and current == before
                and (is_done is None or await is_done())
            ):
                return
            before = current
            await asyncio.sleep(1)


def _numbers(seconds: float, calls: Sequence[Call], size: Size) -> Numbers:
    counted = fleet.count_by_resource(calls)
    return {
        SECONDS: seconds,
        WRITES: len(calls),
        WRITES_PER_POOL: len(calls) / size.all_pools,
        DEPLOYMENTS: counted["machinedeployments"],
        STATUSES: counted[f"{names.CLUSTER_PLURAL}/status"],
        EVENTS: counted["events"],
    }
