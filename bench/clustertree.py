"""Clustertree: cost and latency of mirroring leaf clusters.

leases      2,000 leases on a real kube-apiserver: the rate of a round beside the same patches sent raw.
tree        20 leaves on embedded servers and 3 on real ones under a real root. Each has 1,000 pods and 100 nodes, each
            mirrored as a node. First single pods are created on idle nodes, then 200 pods a second, half of them on ten
            hot nodes. Meanwhile every lease has to be renewed every ten seconds.
pod event   a leaf mirrored as one node, with 1,000 and with 20,000 pods: the operator's cost of one more pod, as the
            median of three series.

The root has no controllers, so only the operator writes nodes. Admission webhooks are off.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import aiohttp

from bench import clustertree_churn as churn
from bench import clustertree_fleet as fleet
from bench import clustertree_leases as leases
from bench.clustertree_fleet import Leaf, MirroredCpu
from bench.harness import Contestant, Numbers, Requirement, Result, compare
from bench.load import Call, connect
from bench.operator import Operator, run_operator
from bench.replay import object_of
from bench.servers import RunningServer, install_crds, real
from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE

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

CHURN_P99 = "from the pod to the mirrored node, 99th percentile, s"
CHURN_MEDIAN = "the same, median, s"
QUIET_P99 = "from the pod on an idle node to the mirrored node, 99th percentile, ms"
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
        return compare(
            f"clustertree-leases-{count}",
            [
                Contestant(LOOP, lambda: leases.renew_by_loop(server, count)),
                Contestant(RAW, lambda: leases.renew_raw(server, count)),
            ],
            requirements=[Requirement(leases.RATE, LOOP, RAW, at_least=1 / 1.25)],
            rounds=rounds,
        )


def _trees() -> Result:
    both = (EMBEDDED, REAL)
    return compare(
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
    return compare(
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


# runs


def _tree(context: AbstractContextManager[list[Leaf]]) -> Numbers:
    with context as leaves, _root() as (root, operator):
        return asyncio.run(_measure_tree(root, operator, leaves))


async def _measure_tree(root: RunningServer, operator: Operator, leaves: Sequence[Leaf]) -> Numbers:
    async with (
        connect(root.target, fleet.IN_FLIGHT) as session,
        churn.connect_all(leaves) as sessions,
        fleet.watch_mirrors(session) as shown,
    ):
        await _bring_up(session, sessions, shown, leaves, PODS)
        hot, others = churn.hot_and_other_nodes(leaves)
        await asyncio.sleep(2 * 10)  # every lease has been renewed once more before ages count
        async with churn.watch_lease_ages(session) as ages:
            quiet = await churn.time_single_pods(sessions, shown, others[-QUIET_NODES:])
            known, cpu, began = len(await operator.recorded_writes()), operator.cpu_seconds(), time.perf_counter()
            turns = churn.alternate(hot, others[:-QUIET_NODES])
            changes = await churn.create_pods(sessions, turns, int(PER_SECOND * SECONDS), PER_SECOND)
            await _wait_until_shown(shown, leaves)
            seconds, cpu = time.perf_counter() - began, operator.cpu_seconds() - cpu
        written = (await operator.recorded_writes())[known:]
    waits = churn.latencies(shown, changes)
    return {
        CHURN_P99: churn.percentile(waits, 0.99),
        CHURN_MEDIAN: churn.percentile(waits, 0.5),
        QUIET_P99: churn.percentile(quiet, 0.99) * 1000,
        QUIET_MEDIAN: churn.percentile(quiet, 0.5) * 1000,
        WRITES: _node_writes(written) / len(changes),
        BUSIEST: churn.max_write_rate(shown, [leaf.mirror(node) for leaf, node in hot], began),
        LEASED: ages.leases,
        OLDEST: ages.oldest,
        CPU: cpu / seconds,
        MEMORY: operator.peak_mb(),
    }


def _pod_event(pods: int) -> Numbers:
    with fleet.embedded_leaves(1, NODES, is_whole=True) as leaves, _root() as (root, operator):
        return asyncio.run(_measure_pod_events(root, operator, leaves, pods))


async def _measure_pod_events(root: RunningServer, operator: Operator, leaves: Sequence[Leaf], pods: int) -> Numbers:
    async with (
        connect(root.target, fleet.IN_FLIGHT) as session,
        churn.connect_all(leaves) as sessions,
        fleet.watch_mirrors(session) as shown,
    ):
        await _bring_up(session, sessions, shown, leaves, pods)
        idle = await _idle_cpu(operator, EVENTS / EVENTS_PER_SECOND)
        turns = itertools.cycle([(leaf, node) for leaf in leaves for node in leaf.nodes])
        costs, plans = [], operator.counters().plans
        for _ in range(SERIES):
            before = operator.cpu_seconds()
            await churn.create_pods(sessions, turns, EVENTS, EVENTS_PER_SECOND)
            await _wait_until_shown(shown, leaves)
            costs.append(operator.cpu_seconds() - before - idle)
        plans = operator.counters().plans - plans
    return {
        CPU_PER_EVENT: statistics.median(costs) / EVENTS * 1000,
        PLANS_PER_EVENT: plans / SERIES / EVENTS,
        MEMORY: operator.peak_mb(),
    }


async def _idle_cpu(operator: Operator, seconds: float) -> float:
    """Return the CPU seconds of an idle period: watches and leases."""
    before = operator.cpu_seconds()
    await asyncio.sleep(seconds)
    return operator.cpu_seconds() - before


# setup


@contextmanager
def _root() -> Iterator[tuple[RunningServer, Operator]]:
    with real() as root:
        asyncio.run(install_crds(root, CLUSTERTREE))
        with run_operator(root.kubeconfig, names.CAPABILITY) as operator:
            yield root, operator


async def _bring_up(
    session: aiohttp.ClientSession, sessions: churn.Sessions, shown: MirroredCpu, leaves: Sequence[Leaf], pods: int
) -> None:
    """Fill the leaves, join them, and wait until the root mirrors them."""
    print(f"clustertree: bringing up {len(leaves)} leaves of {pods:,} pods", file=sys.stderr)
    await asyncio.gather(*(fleet.fill(sessions[leaf.name], leaf, pods) for leaf in leaves))
    for leaf in leaves:
        await fleet.join(session, leaf)
    await _wait_until_shown(shown, leaves)


async def _wait_until_shown(shown: MirroredCpu, leaves: Sequence[Leaf]) -> None:
    for leaf in leaves:
        await shown.wait_for(leaf.expected_cpu())


def _node_writes(calls: Sequence[Call]) -> int:
    return sum(object_of(call).startswith(f"{fleet.NODES}/") for call in calls)
