"""Pods that come on leaves, at a steady rate, and how long the root took to show each of them.

Some nodes are hot: they get as many of the pods as all the others together, so that their changes have to be put
together; the rest are quiet until their turn comes. A pod only ever takes away, so it has arrived when the root's node
offers no more than is left with it.
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

from bench.clustertree_fleet import IN_FLIGHT, Leaf, Shown
from bench.load import deliver, session
from nodeyard.client.resources import LEASES
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.kube.timestamps import parse_rfc3339

HOT = 10
"""Nodes that half of the pods are for."""
LOOK_SECONDS = 2.0

Sessions = Mapping[str, aiohttp.ClientSession]


@dataclass(frozen=True)
class Change:
    """A pod was made."""

    mirror: str
    left: int
    """What the root's node offers with it."""
    at: float
    """When it was sent."""


@asynccontextmanager
async def sessions(leaves: Sequence[Leaf]) -> AsyncIterator[Sessions]:
    async with AsyncExitStack() as stack:
        yield {leaf.name: await stack.enter_async_context(session(leaf.server.target, IN_FLIGHT)) for leaf in leaves}


def places(leaves: Sequence[Leaf]) -> tuple[list[tuple[Leaf, str]], list[tuple[Leaf, str]]]:
    """The hot nodes, and the others, leaf after leaf in turns."""
    turns = [(leaf, leaf.nodes[number]) for number in range(len(leaves[0].nodes)) for leaf in leaves]
    return turns[:HOT], turns[HOT:]


async def touch(opened: Sessions, shown: Shown, quiet: Sequence[tuple[Leaf, str]]) -> list[float]:
    """One pod on each of these nodes, one after another; how long each took to be shown."""
    waits = []
    for leaf, node in quiet:
        [change] = await churn(opened, iter([(leaf, node)]), 1, 1.0)
        await shown.show({change.mirror: change.left})
        arrived = shown.reached(change.mirror, change.left, change.at)
        waits.append((arrived or time.perf_counter()) - change.at)
    return waits


async def churn(opened: Sessions, turns: Iterator[tuple[Leaf, str]], count: int, per_second: float) -> list[Change]:
    """So many pods at this rate. The rate is kept whatever the leaves' servers take for each."""
    changes: list[Change] = []
    began = time.perf_counter()
    async with asyncio.TaskGroup() as sending:
        for number, (leaf, node) in enumerate(itertools.islice(turns, count)):
            await asyncio.sleep(max(0.0, began + number / per_second - time.perf_counter()))
            call = leaf.add_pod(node)
            changes.append(Change(leaf.mirror(node), leaf.left(node), time.perf_counter()))
            sending.create_task(deliver(opened[leaf.name], call))
    return changes


def mixed(hot: Sequence[tuple[Leaf, str]], others: Sequence[tuple[Leaf, str]]) -> Iterator[tuple[Leaf, str]]:
    """One for a hot node, one for another, and so on without end."""
    for pair in zip(itertools.cycle(hot), itertools.cycle(others), strict=True):
        yield from pair


def waits(shown: Shown, changes: Sequence[Change]) -> list[float]:
    """How long each took to be shown; all of them have been."""
    found = []
    for change in changes:
        arrived = shown.reached(change.mirror, change.left, change.at)
        if arrived is None:
            raise RuntimeError(f"{change.mirror} was never seen with {change.left}m CPU or less")
        found.append(arrived - change.at)
    return found


def busiest(shown: Shown, mirrors: Sequence[str], since: float) -> float:
    """Writes per second of the node that was written most often."""
    rates = [0.0]
    for mirror in mirrors:
        moments = shown.changes(mirror, since)
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
class Ages:
    """The oldest that any lease was ever seen, and how many there were."""

    oldest: float = 0.0
    leases: int = 0


@asynccontextmanager
async def aging(opened: aiohttp.ClientSession) -> AsyncIterator[Ages]:
    """Looks at the leases of all nodes every few seconds."""
    ages = Ages()

    async def look_forever() -> None:
        while True:
            await _look(opened, ages)
            await asyncio.sleep(LOOK_SECONDS)

    looking = asyncio.create_task(look_forever())
    try:
        yield ages
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
    await _look(opened, ages)


async def _look(opened: aiohttp.ClientSession, ages: Ages) -> None:
    asked = datetime.now(UTC)
    async with opened.get(LEASES.path(LEASE_NAMESPACE)) as answer:
        answer.raise_for_status()
        found = msgspec.json.decode(await answer.read(), type=_Leases).items
    moments = [(asked - parse_rfc3339(each.spec.renew_time)).total_seconds() for each in found]
    ages.oldest, ages.leases = max(ages.oldest, *moments, 0.0), len(found)
