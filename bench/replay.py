"""What an operator wrote, sent again with nothing around it: the ceiling.

The very bodies, as fast as the server takes them at the operator's concurrency, in the order in which they were sent:
writes of one object one after another, and a namespace before what is in it. Only what names one particular object has
to be exchanged: on another fleet the same node has another uid and resourceVersion.
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

from bench.load import Call, Target, deliver, encoded, session
from nodeyard.kube.names import NAMESPACE

NODES = "/api/v1/nodes"
TEMPLATES = "/apis/nyallocator.cybozu.io/v1/nodetemplates"
EVENTS = "/apis/events.k8s.io/v1/"

Metadata = Mapping[str, Any]


def recorded(record: Path) -> list[Call]:
    """Everything but what an operator writes to lead: its lease, and the namespace of that."""
    calls = msgspec.json.Decoder(Call).decode_lines(record.read_bytes())
    return [call for call in calls if not object_of(call).startswith((_LEASES, _HOME))]


_LEASES = "/apis/coordination.k8s.io/v1/"
_HOME = f"/api/v1/namespaces/{NAMESPACE}"


@dataclass(frozen=True)
class Tally:
    """Writes by what they are for."""

    nodes: int
    templates: int
    statuses: int
    events: int

    @staticmethod
    def of(calls: Sequence[Call]) -> Tally:
        paths = [call.path.partition("?")[0] for call in calls]
        statuses = sum(path.startswith(TEMPLATES) and path.endswith("/status") for path in paths)
        return Tally(
            nodes=sum(path.startswith(NODES) for path in paths),
            templates=sum(path.startswith(TEMPLATES) for path in paths) - statuses,
            statuses=statuses,
            events=sum(path.startswith(EVENTS) for path in paths),
        )


def retargeted(calls: Sequence[Call], found: Mapping[str, Metadata]) -> list[Call]:
    """The calls for another fleet; `found` has the metadata of its objects by path.

    A node is written once, so its resourceVersion is known beforehand. A template is written several times: its
    preconditions are taken out.
    """
    return [_retargeted(call, found) for call in calls]


def _retargeted(call: Call, found: Mapping[str, Metadata]) -> Call:
    path = call.path.partition("?")[0].removesuffix("/status")
    current = found.get(path)
    if current is None:
        return call
    body = msgspec.json.decode(call.body)
    metadata = {name: value for name, value in body.get("metadata", {}).items() if name not in _IDENTITY}
    if path.startswith(NODES):
        metadata |= {name: current[name] for name in _IDENTITY if name in body.get("metadata", {})}
    return replace(call, body=encoded({**body, "metadata": metadata}))


_IDENTITY = ("uid", "resourceVersion")


def unbound(call: Call) -> Call:
    """The call without preconditions, for objects that are written several times or are made by other calls."""
    body = msgspec.json.decode(call.body)
    metadata = body.get("metadata", {})
    if not any(name in metadata for name in _IDENTITY):
        return call
    free = {name: value for name, value in metadata.items() if name not in _IDENTITY}
    return replace(call, body=encoded({**body, "metadata": free}))


# the order


def object_of(call: Call) -> str:
    """The path of the object that a call writes, whichever part of it."""
    path = call.path.partition("?")[0]
    if call.method == "POST":
        name = msgspec.json.decode(call.body).get("metadata", {}).get("name", "")
        return f"{path}/{name}"
    return path.removesuffix("/status")


def predecessors(calls: Sequence[Call]) -> list[tuple[int, ...]]:
    """For each call, the earlier ones that have to be done: the last on its object, and on the namespace that is in."""
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
    opened: aiohttp.ClientSession, calls: Sequence[Call], after: Sequence[tuple[int, ...]], in_flight: int
) -> None:
    """All calls, `in_flight` at a time, each after its predecessors, which were taken earlier: none waits in vain."""
    pending = enumerate(zip(calls, after, strict=True))
    is_done = [asyncio.Event() for _ in calls]

    async def work() -> None:
        for number, (call, before) in pending:
            for each in before:
                await is_done[each].wait()
            await deliver(opened, call)
            is_done[number].set()

    async with asyncio.TaskGroup() as workers:
        for _ in range(in_flight):
            workers.create_task(work())


# elsewhere


@dataclass(frozen=True)
class Replayed:
    began: float
    """By the clock that all processes of this machine share."""
    cpu_seconds: float
    peak_mb: float


Replay: TypeAlias = Callable[[Target, Sequence[Call], int], Replayed]
"""Sends calls, so many at a time."""


@contextmanager
def replayer() -> Iterator[Replay]:
    """Sends from a process of its own, as the operator does, on the same event loop."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_warm).result()
        yield lambda target, calls, in_flight: pool.submit(_replay, target, calls, in_flight).result()


def _warm() -> None:
    """The process has started and has its imports."""


def _replay(target: Target, calls: Sequence[Call], in_flight: int) -> Replayed:
    return uvloop.run(_send(target, calls, in_flight))


async def _send(target: Target, calls: Sequence[Call], in_flight: int) -> Replayed:
    after = predecessors(calls)
    async with session(target, in_flight) as opened:
        began, before = time.perf_counter(), time.process_time()
        await send_in_order(opened, calls, after, in_flight)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return Replayed(began, time.process_time() - before, peak)
