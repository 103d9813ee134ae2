"""The embedded API server beside kube-apiserver: patches, lease renewals, a large list, memory.

Both hold 10,000 realistic nodes with managedFields and serve one watch during the writes.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness import Contestant, Numbers, Requirement, Result, compare
from bench.load import MERGE, Call, Target, attach_watcher, connect, encode, send_all
from bench.servers import embedded, memory_mb, real
from nodeyard.kube.json import Object
from nodeyard.process.clock import EPOCH
from nodeyard.sim.nodes import node

NODES = 10_000
WRITES = 1_000
IN_FLIGHT = 32
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

ON_DISK = "embedded, --data-dir"
PATCHES = "node merge patches per second"
RENEWALS = "lease renewals per second"
LIST = f"list of {NODES:,} nodes, seconds"
MEMORY = f"memory with {NODES:,} nodes, MB"


@dataclass(frozen=True)
class Server:
    name: str
    target: Target
    processes: tuple[int, ...]


def run() -> Iterator[Result]:
    with embedded() as ours, embedded(on_disk=True) as durable, real() as theirs:
        servers = [
            Server("embedded", ours.target, ours.processes),
            Server(ON_DISK, durable.target, durable.processes),
            Server("kube-apiserver", theirs.target, theirs.processes),
        ]
        for server in servers:
            print(f"apiserver: filling {server.name} with {NODES:,} nodes", file=sys.stderr)
            asyncio.run(_fill(server.target))
        stamps = itertools.count(1)
        contestants = [_contestant(server, stamps) for server in servers]
        yield compare(
            "apiserver",
            contestants,
            requirements=[
                Requirement(PATCHES, "embedded", "kube-apiserver", at_least=1.0),
                Requirement(RENEWALS, "embedded", "kube-apiserver", at_least=1.0),
                Requirement(LIST, "embedded", "kube-apiserver", at_most=1.0),
                Requirement(MEMORY, "embedded", at_most=600),
                Requirement(PATCHES, ON_DISK, "kube-apiserver", at_least=1.0),
                Requirement(RENEWALS, ON_DISK, "kube-apiserver", at_least=1.0),
            ],
        )


def _contestant(server: Server, stamps: Iterator[int]) -> Contestant:
    return Contestant(server.name, lambda: asyncio.run(_measure(server, next(stamps))))


async def _fill(target: Target) -> None:
    async with connect(target, IN_FLIGHT) as session:
        nodes = (Call("POST", "/api/v1/nodes", encode(node(_name(n), EPOCH))) for n in range(NODES))
        await send_all(session, nodes, IN_FLIGHT)
        await send_all(session, (Call("POST", LEASES, encode(_lease(n))) for n in range(WRITES)), IN_FLIGHT)


async def _measure(server: Server, stamp: int) -> Numbers:
    async with connect(server.target, IN_FLIGHT + 4) as session:
        async with attach_watcher(session, "/api/v1/nodes"):
            patches = await send_all(session, _patches(stamp), IN_FLIGHT)
        async with attach_watcher(session, LEASES):
            renewals = await send_all(session, _renewals(stamp), IN_FLIGHT)
        listing = await _list(server.target)
    return {
        PATCHES: WRITES / patches,
        RENEWALS: WRITES / renewals,
        LIST: listing,
        MEMORY: memory_mb(server.processes),
    }


async def _list(target: Target) -> float:
    async with connect(target, 1) as session:
        began = time.perf_counter()
        async with session.get("/api/v1/nodes", params={"resourceVersion": "0"}) as response:
            async for _ in response.content.iter_chunked(1 << 20):
                pass
        return time.perf_counter() - began


def _patches(stamp: int) -> Iterator[Call]:
    for n in range(WRITES):
        body = encode({"metadata": {"annotations": {"bench.nodeyard.dev/stamp": str(stamp)}}})
        yield Call("PATCH", f"/api/v1/nodes/{_name(n)}?fieldManager=bench", body, MERGE)


def _renewals(stamp: int) -> Iterator[Call]:
    moment = f"2026-01-01T00:{stamp % 60:02d}:00.000000Z"
    for n in range(WRITES):
        yield Call("PATCH", f"{LEASES}/{_name(n)}", encode({"spec": {"renewTime": moment}}), MERGE)


def _name(n: int) -> str:
    return f"node-{n:05d}"


def _lease(n: int) -> Object:
    name = _name(n)
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
