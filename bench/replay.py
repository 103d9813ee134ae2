"""Replays recorded writes of an operator: the ceiling that the operator is compared with.

The recorded bodies are sent in order, as fast as the server accepts them at the operator's concurrency: writes of one
object one after another, and a namespace before its contents. Only preconditions change: on another fleet the same
node has another uid and resourceVersion.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import msgspec
import uvloop

from bench.load import Call, Target, connect, encode, send
from nodeyard.kube.names import NAMESPACE

NODES = "/api/v1/nodes"
TEMPLATES = "/apis/nyallocator.cybozu.io/v1/nodetemplates"
EVENTS = "/apis/events.k8s.io/v1/"

Metadata = Mapping[str, Any]


def read_record(record: Path) -> list[Call]:
    """Read a record, without the operator's own Lease and its namespace."""
    calls = msgspec.json.Decoder(Call).decode_lines(record.read_bytes())
    return [call for call in calls if not object_of(call).startswith((_LEASES, _HOME))]


_LEASES = "/apis/coordination.k8s.io/v1/"
_HOME = f"/api/v1/namespaces/{NAMESPACE}"


@dataclass(frozen=True)
class WriteCounts:
    """Number of writes by purpose."""

    nodes: int
    templates: int
    statuses: int
    events: int

    @staticmethod
    def of(calls: Sequence[Call]) -> WriteCounts:
        paths = [call.path.partition("?")[0] for call in calls]
        statuses = sum(path.startswith(TEMPLATES) and path.endswith("/status") for path in paths)
        return WriteCounts(
            nodes=sum(path.startswith(NODES) for path in paths),
            templates=sum(path.startswith(TEMPLATES) for path in paths) - statuses,
            statuses=statuses,
            events=sum(path.startswith(EVENTS) for path in paths),
        )


def retarget(calls: Sequence[Call], found: Mapping[str, Metadata]) -> list[Call]:
    """Adapt calls to another fleet; `found` has the metadata of its objects by path.

    A node is written once, so its resourceVersion is known beforehand. A template is written several times, so its
    preconditions are removed.
    """
    return [_retarget_call(call, found) for call in calls]


def _retarget_call(call: Call, found: Mapping[str, Metadata]) -> Call:
    path = call.path.partition("?")[0].removesuffix("/status")
    current = found.get(path)
    if current is None:
        return call
    body = msgspec.json.decode(call.body)
    metadata = {name: value for name, value in body.get("metadata", {}).items() if name not in _IDENTITY}
    if path.startswith(NODES):
        metadata |= {name: current[name] for name in _IDENTITY if name in body.get("metadata", {})}
    return replace(call, body=encode({**body, "metadata": metadata}))


_IDENTITY = ("uid", "resourceVersion")


def drop_preconditions(call: Call) -> Call:
    """Remove the preconditions, for objects that are written several times or created by other calls."""
    body = msgspec.json.decode(call.body)
    metadata = body.get("metadata", {})
    if not any(name in metadata for name in _IDENTITY):
        return call
    free = {name: value for name, value in metadata.items() if name not in _IDENTITY}
    return replace(call, body=encode({**body, "metadata": free}))


# order


def object_of(call: Call) -> str:
    """Return the path of the object that a call writes, also for subresources."""
    path = call.path.partition("?")[0]
    if call.method == "POST":
        name = msgspec.json.decode(call.body).get("metadata", {}).get("name", "")
        return f"{path}/{name}"
    return path.removesuffix("/status")


def predecessors(calls: Sequence[Call]) -> list[tuple[int, ...]]:
    """Return for each call the earlier calls it waits for: the last on its object and the last on its namespace."""
    last: dict[str, int] = {}
    found = []
    for number, call in enumerate(calls):
        path = object_of(call)
        within = _NAMESPACED.search(path)
        needed = (path, f"/api/v1/namespaces/{within[1]}") if within else (path,)
        found.append(tuple(last[each] for each in needed if each in last))
        last[path] = number
    return found


_NAMESPACED = re.compile(r"/namespaces/([^/]+)/")


async def send_in_order(
    session: aiohttp.ClientSession, calls: Sequence[Call], after: Sequence[tuple[int, ...]], in_flight: int
) -> None:
    """Send all calls, `in_flight` at a time, each after its predecessors. Those were taken earlier: no deadlock."""
    pending = enumerate(zip(calls, after, strict=True))
    is_done = [asyncio.Event() for _ in calls]

    async def work() -> None:
        for number, (call, before) in pending:
            for each in before:
                await is_done[each].wait()
            await send(session, call)
            is_done[number].set()

    async with asyncio.TaskGroup() as workers:
        for _ in range(in_flight):
            workers.create_task(work())


# in a process of its own


@dataclass(frozen=True)
class ReplayResult:
    began: float
    """By the monotonic clock, which all processes share."""
    cpu_seconds: float
    peak_mb: float


Replay: TypeAlias = Callable[[Target, Sequence[Call], int], ReplayResult]
"""Sends calls, the given number in flight."""


@contextmanager
def replayer() -> Iterator[Replay]:
    """Replay from a separate process with uvloop, like the operator."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_warm).result()
        yield lambda target, calls, in_flight: pool.submit(_replay, target, calls, in_flight).result()


def _warm() -> None:
    """Do nothing: the process has started and imported its modules."""


def _replay(target: Target, calls: Sequence[Call], in_flight: int) -> ReplayResult:
    return uvloop.run(_send(target, calls, in_flight))


async def _send(target: Target, calls: Sequence[Call], in_flight: int) -> ReplayResult:
    after = predecessors(calls)
    async with connect(target, in_flight) as session:
        began, before = time.perf_counter(), time.process_time()
        await send_in_order(session, calls, after, in_flight)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return ReplayResult(began, time.process_time() - before, peak)
