"""Creates pods on leaves at a steady rate, and measures how long the root takes to mirror each.

Half of the pods are for a few hot nodes, so that the operator has to coalesce their changes. No pod is ever deleted, so
a pod has arrived when the mirrored node's allocatable CPU is at most what that pod leaves.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp
import msgspec

from bench.clustertree_fleet import IN_FLIGHT, Leaf, MirroredCpu
from bench.load import connect, send
from nodeyard.client.resources import LEASES
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.kube.timestamps import parse_rfc3339

HOT = 10
"""Nodes that get half of the pods."""
LOOK_SECONDS = 2.0

Sessions = Mapping[str, aiohttp.ClientSession]


@dataclass(frozen=True)
class Change:
    """A created pod."""

    mirror: str
    free_cpu: int
    """Allocatable CPU of the mirrored node with this pod, in millicores."""
    at: float
    """Time of the request."""


@asynccontextmanager
async def connect_all(leaves: Sequence[Leaf]) -> AsyncIterator[Sessions]:
    async with AsyncExitStack() as stack:
        yield {leaf.name: await stack.enter_async_context(connect(leaf.server.target, IN_FLIGHT)) for leaf in leaves}


def hot_and_other_nodes(leaves: Sequence[Leaf]) -> tuple[list[tuple[Leaf, str]], list[tuple[Leaf, str]]]:
    """Return the hot nodes and the others, each taken from the leaves in turn."""
    turns = [(leaf, leaf.nodes[number]) for number in range(len(leaves[0].nodes)) for leaf in leaves]
    return turns[:HOT], turns[HOT:]


async def time_single_pods(sessions: Sessions, shown: MirroredCpu, quiet: Sequence[tuple[Leaf, str]]) -> list[float]:
    """Create one pod on each node, one after another; return the latencies."""
    found = []
    for leaf, node in quiet:
        [change] = await create_pods(sessions, iter([(leaf, node)]), 1, 1.0)
        await shown.wait_for({change.mirror: change.free_cpu})
        arrived = shown.time_reached(change.mirror, change.free_cpu, change.at)
        found.append((arrived or time.perf_counter()) - change.at)
    return found


async def create_pods(
    sessions: Sessions, turns: Iterator[tuple[Leaf, str]], count: int, per_second: float
) -> list[Change]:
    """Create pods at a fixed rate, however long each request takes."""
    changes: list[Change] = []
    began = time.perf_counter()
    async with asyncio.TaskGroup() as sending:
        for number, (leaf, node) in enumerate(itertools.islice(turns, count)):
            await asyncio.sleep(max(0.0, began + number / per_second - time.perf_counter()))
            call = leaf.add_pod(node)
            changes.append(Change(leaf.mirror(node), leaf.free_cpu(node), time.perf_counter()))
            sending.create_task(send(sessions[leaf.name], call))
    return changes


def alternate(hot: Sequence[tuple[Leaf, str]], others: Sequence[tuple[Leaf, str]]) -> Iterator[tuple[Leaf, str]]:
    """Yield a hot node and another node in turn, endlessly."""
    for pair in zip(itertools.cycle(hot), itertools.cycle(others), strict=True):
        yield from pair


def latencies(shown: MirroredCpu, changes: Sequence[Change]) -> list[float]:
    """Return the time that each change took to appear. All of them must have appeared."""
    found = []
    for change in changes:
        arrived = shown.time_reached(change.mirror, change.free_cpu, change.at)
        if arrived is None:
            raise RuntimeError(f"{change.mirror} was never seen with {change.free_cpu}m CPU or less")
        found.append(arrived - change.at)
    return found


def max_write_rate(shown: MirroredCpu, mirrors: Sequence[str], since: float) -> float:
    """Return the highest rate of writes per second of any node."""
    rates = [0.0]
    for mirror in mirrors:
        moments = shown.change_times(mirror, since)
        if len(moments) > 2:
            rates.append((len(moments) - 1) / (moments[-1] - moments[0]))
    return max(rates)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


# leases


class _Meta(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct, rename="camel"):
    renew_time: str = ""


class _Lease(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


class _Leases(msgspec.Struct):
    items: list[_Lease]


@dataclass
class LeaseAges:
    """The highest age seen of any lease, and the number of leases."""

    oldest: float = 0.0
    leases: int = 0


@asynccontextmanager
async def watch_lease_ages(session: aiohttp.ClientSession) -> AsyncIterator[LeaseAges]:
    """Check the leases of all nodes every few seconds."""
    ages = LeaseAges()

    async def look_forever() -> None:
        while True:
            await _look(session, ages)
            await asyncio.sleep(LOOK_SECONDS)

    looking = asyncio.create_task(look_forever())
    try:
        yield ages
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
    await _look(session, ages)


async def _look(session: aiohttp.ClientSession, ages: LeaseAges) -> None:
    asked = datetime.now(UTC)
    async with session.get(LEASES.path(LEASE_NAMESPACE)) as response:
        response.raise_for_status()
        found = msgspec.json.decode(await response.read(), type=_Leases).items
    moments = [(asked - parse_rfc3339(each.spec.renew_time)).total_seconds() for each in found]
    ages.oldest, ages.leases = max(ages.oldest, *moments, 0.0), len(found)
