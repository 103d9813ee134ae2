"""What an operator wrote, sent again with nothing around it: the ceiling.

The very bodies, as fast as the server takes them at the operator's concurrency. Only what names one particular object
has to be exchanged: on another fleet the same node has another uid and resourceVersion.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.load import Call, Target, encoded, send, session

NODES = "/api/v1/nodes"
TEMPLATES = "/apis/nyallocator.cybozu.io/v1/nodetemplates"
EVENTS = "/apis/events.k8s.io/v1/"

Metadata = Mapping[str, Any]


def recorded(record: Path) -> list[Call]:
    """What concerns the fleet: its nodes, templates and events. Leases and CRDs do not."""
    calls = msgspec.json.Decoder(Call).decode_lines(record.read_bytes())
    return [call for call in calls if call.path.startswith((NODES, TEMPLATES, EVENTS))]


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


@dataclass(frozen=True)
class Replayed:
    began: float
    """By the clock that all processes of this machine share."""
    cpu_seconds: float
    peak_mb: float


@contextmanager
def replayer() -> Iterator[Callable[[Target, Sequence[Call], int], Replayed]]:
    """Sends from a process of its own, as the operator does, on the same event loop."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_warm).result()
        yield lambda target, calls, in_flight: pool.submit(_replay, target, calls, in_flight).result()


def _warm() -> None:
    """The process has started and has its imports."""


def _replay(target: Target, calls: Sequence[Call], in_flight: int) -> Replayed:
    return uvloop.run(_send(target, calls, in_flight))


async def _send(target: Target, calls: Sequence[Call], in_flight: int) -> Replayed:
    async with session(target, in_flight) as opened:
        began, before = time.perf_counter(), time.process_time()
        await send(opened, calls, in_flight)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return Replayed(began, time.process_time() - before, peak)
