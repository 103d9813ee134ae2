"""Clustertree: what a tree of leaves costs, and how soon the root shows what happens in it.

leases      2,000 leases on a real kube-apiserver: the rate of a round beside the same patches sent raw.
tree        20 leaves on embedded servers and 3 on real ones, each of 100 nodes that are mirrored one by one and 1,000
            pods, under a real root: 200 pods a second come on the leaves, half of them on ten hot nodes; before that,
            single pods on nodes that were quiet. Meanwhile every lease is to be renewed every ten seconds.
pod event   a leaf that is mirrored whole, with 1,000 pods and with 20,000: the operator's work for one more, as the
            median of three series.

The root has no controllers: nothing but the operator writes nodes. Admission webhooks are off.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import aiohttp

from bench import clustertree_churn as churning
from bench import clustertree_fleet as fleet
from bench import clustertree_leases as leases
from bench.clustertree_fleet import Leaf, Shown
from bench.harness import Contestant, Numbers, Requirement, Result, compete
from bench.load import Call, session
from bench.operator import Operator, operator
from bench.replay import object_of
from bench.servers import Running, real
from nodeyard.capabilities.clustertree import names

ROUNDS = 3
LEASES = 2_000
LOOP, RAW = "loop", "raw patches"

LEAVES, REAL_LEAVES = 20, 3
NODES, PODS = 100, 1_000
PER_SECOND, SECONDS = 200.0, 30
QUIET_NODES = 50
EMBEDDED, REAL = f"{LEAVES} embedded leaves", f"{REAL_LEAVES} real leaves"

FEW, MANY = 1_000, 20_000
EVENTS, EVENTS_PER_SECOND = 1_000, 50.0
SERIES = 3

CHURN_P99 = "from the pod to the root's node, 99th percentile, s"
CHURN_MEDIAN = "the same, median, s"
QUIET_P99 = "from a quiet node's pod to the root's node, 99th percentile, ms"
QUIET_MEDIAN = "the same, median, ms"
WRITES = "writes of nodes per pod"
BUSIEST = "writes per second of the busiest node"
LEASED = "leases"
OLDEST = "oldest lease, s"
CPU = "CPU of the operator, share of a core"
MEMORY = "peak memory, MB"

CPU_PER_EVENT = "CPU per pod event, ms"
PLANS_PER_EVENT = "plans per pod event"


def run() -> Iterator[Result]:
    yield _lease_rate()
    yield _trees()
    yield _pod_events()


def _lease_rate(count: int = LEASES, rounds: int = ROUNDS) -> Result:
    with real() as server:
        return compete(
            f"clustertree-leases-{count}",
            [
                Contestant(LOOP, lambda: leases.by_loop(server, count)),
                Contestant(RAW, lambda: leases.raw(server, count)),
            ],
            requirements=[Requirement(leases.RATE, LOOP, RAW, at_least=1 / 1.25)],
            rounds=rounds,
        )


def _trees() -> Result:
    both = (EMBEDDED, REAL)
    return compete(
        "clustertree-tree",
        [
            Contestant(EMBEDDED, lambda: _tree(fleet.embedded_leaves(LEAVES, NODES))),
            Contestant(REAL, lambda: _tree(fleet.real_leaves(REAL_LEAVES, NODES))),
        ],
        requirements=[
            *(Requirement(CHURN_P99, each, at_most=2.0) for each in both),
            *(Requirement(QUIET_P99, each, at_most=200.0) for each in both),
            *(Requirement(WRITES, each, at_most=1.0) for each in both),
            *(Requirement(BUSIEST, each, at_most=1.05) for each in both),
            Requirement(LEASED, EMBEDDED, at_least=LEAVES * NODES),
            *(Requirement(OLDEST, each, at_most=15.0) for each in both),
        ],
        rounds=ROUNDS,
        warm_up=False,
    )


def _pod_events() -> Result:
    few, many = f"{FEW:,} pods", f"{MANY:,} pods"
    return compete(
        "clustertree-pod-event",
        [
            Contestant(few, lambda: _pod_event(FEW)),
            Contestant(many, lambda: _pod_event(MANY)),
        ],
        requirements=[
            Requirement(CPU_PER_EVENT, many, few, at_most=1.25),
            Requirement(PLANS_PER_EVENT, many, few, at_most=1.1),
        ],
        rounds=1,
        warm_up=False,
    )


# one run of each


def _tree(given: AbstractContextManager[list[Leaf]]) -> Numbers:
    with given as found, _root() as (root, running):
        return asyncio.run(_measure_tree(root, running, found))


async def _measure_tree(root: Running, running: Operator, found: Sequence[Leaf]) -> Numbers:
    async with (
        session(root.target, fleet.IN_FLIGHT) as opened,
        churning.sessions(found) as ways,
        fleet.watching(opened) as shown,
    ):
        await _grow(opened, ways, shown, found, PODS)
        hot, others = churning.places(found)
        await asyncio.sleep(2 * 10)  # every lease has been renewed once more before ages count
        async with churning.aging(opened) as ages:
            quiet = await churning.touch(ways, shown, others[-QUIET_NODES:])
            known, cpu, began = len(await running.written()), running.cpu_seconds(), time.perf_counter()
            turns = churning.mixed(hot, others[:-QUIET_NODES])
            changes = await churning.churn(ways, turns, int(PER_SECOND * SECONDS), PER_SECOND)
            await _settle(shown, found)
            seconds, cpu = time.perf_counter() - began, running.cpu_seconds() - cpu
        written = (await running.written())[known:]
    waits = churning.waits(shown, changes)
    return {
        CHURN_P99: churning.percentile(waits, 0.99),
        CHURN_MEDIAN: churning.percentile(waits, 0.5),
        QUIET_P99: churning.percentile(quiet, 0.99) * 1000,
        QUIET_MEDIAN: churning.percentile(quiet, 0.5) * 1000,
        WRITES: _node_writes(written) / len(changes),
        BUSIEST: churning.busiest(shown, [leaf.mirror(node) for leaf, node in hot], began),
        LEASED: ages.leases,
        OLDEST: ages.oldest,
        CPU: cpu / seconds,
        MEMORY: running.peak_mb(),
    }


def _pod_event(pods: int) -> Numbers:
    with fleet.embedded_leaves(1, NODES, is_whole=True) as found, _root() as (root, running):
        return asyncio.run(_measure_pod_events(root, running, found, pods))


async def _measure_pod_events(root: Running, running: Operator, found: Sequence[Leaf], pods: int) -> Numbers:
    async with (
        session(root.target, fleet.IN_FLIGHT) as opened,
        churning.sessions(found) as ways,
        fleet.watching(opened) as shown,
    ):
        await _grow(opened, ways, shown, found, pods)
        idle = await _idle_cpu(running, EVENTS / EVENTS_PER_SECOND)
        turns = itertools.cycle([(leaf, node) for leaf in found for node in leaf.nodes])
        costs, plans = [], running.counters().plans
        for _ in range(SERIES):
            before = running.cpu_seconds()
            await churning.churn(ways, turns, EVENTS, EVENTS_PER_SECOND)
            await _settle(shown, found)
            costs.append(running.cpu_seconds() - before - idle)
        plans = running.counters().plans - plans
    return {
        CPU_PER_EVENT: statistics.median(costs) / EVENTS * 1000,
        PLANS_PER_EVENT: plans / SERIES / EVENTS,
        MEMORY: running.peak_mb(),
    }


async def _idle_cpu(running: Operator, seconds: float) -> float:
    """What it costs in so many seconds that nothing happens in: watches and leases."""
    before = running.cpu_seconds()
    await asyncio.sleep(seconds)
    return running.cpu_seconds() - before


# around them


@contextmanager
def _root() -> Iterator[tuple[Running, Operator]]:
    with real() as root, tempfile.TemporaryDirectory() as folder:
        asyncio.run(fleet.install(root))
        with operator(root.kubeconfig, Path(folder), names.CAPABILITY) as running:
            yield root, running


async def _grow(
    opened: aiohttp.ClientSession, ways: churning.Sessions, shown: Shown, found: Sequence[Leaf], pods: int
) -> None:
    """Until the root shows every leaf as it is."""
    print(f"clustertree: bringing up {len(found)} leaves of {pods:,} pods", file=sys.stderr)
    await asyncio.gather(*(fleet.fill(ways[leaf.name], leaf, pods) for leaf in found))
    for leaf in found:
        await fleet.join(opened, leaf)
    await _settle(shown, found)


async def _settle(shown: Shown, found: Sequence[Leaf]) -> None:
    for leaf in found:
        await shown.show(leaf.offers())


def _node_writes(calls: Sequence[Call]) -> int:
    return sum(object_of(call).startswith(f"{fleet.NODES}/") for call in calls)
