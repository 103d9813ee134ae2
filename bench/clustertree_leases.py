"""The lease loop and its ceiling: the same leases on the same server, renewed by the loop and patched raw.

The loop runs as in the operator, with the input of one leaf whose nodes are as many as the leases. A round is measured
from its first request to its last response; the round before it creates the leases and learns their versions. The
probed leaf is the server itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import uvloop

from bench.harness import Numbers
from bench.load import MERGE, Call, connect, encode, send_all
from bench.servers import RunningServer
from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.inputs import LeaseInput, NodeLeaseInput
from nodeyard.capabilities.clustertree.leases.keeper import IN_FLIGHT, renew
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.client.resources import LEASES, Resource
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.kube.timestamps import format_rfc3339_micro
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.background import LoopContext, LoopInputs
from nodeyard.runtime.leader.write_fence import ALWAYS

RATE = "renewals per second"
CPU_PER_RENEWAL = "CPU per renewal, ms"
ROUND_SECONDS = 60.0


def renew_by_loop(server: RunningServer, leases: int) -> Numbers:
    """Renew with the lease loop, on the event loop type of the lease thread."""
    return asyncio.run(_renew_by_loop(server, leases))


def renew_raw(server: RunningServer, leases: int) -> Numbers:
    return uvloop.run(_renew_raw(server, leases))


class Stopwatch:
    """Observes all responses; once armed, measures the wanted number of patches."""

    def __init__(self, wanted: int) -> None:
        self.is_armed = False
        self._wanted = wanted
        self._count = 0
        self._began = self._cpu = 0.0
        self.numbers: Numbers = {}
        self.is_done = asyncio.Event()

    def observe(self, verb: str, _resource: Resource[Any], code: int, seconds: float, _reason: str) -> None:
        if not self.is_armed or verb != "patch" or self.is_done.is_set():
            return
        if code != 200:
            raise RuntimeError(f"a lease renewal failed with status {code}")
        now = time.perf_counter()
        if self._count == 0:
            self._began, self._cpu = now - seconds, time.process_time()
        self._count += 1
        if self._count == self._wanted:
            self.numbers = _numbers(self._wanted, now - self._began, time.process_time() - self._cpu)
            self.is_done.set()


async def _renew_by_loop(server: RunningServer, leases: int) -> Numbers:
    inputs, stopped, stopwatch = LoopInputs(), asyncio.Event(), Stopwatch(leases)
    nodes = tuple(NodeLeaseInput(name, "", True) for name in lease_names(leases))
    inputs.put("leaf", LeaseInput("leaf", server.kubeconfig.read_bytes(), nodes))

    def publish(name: str, value: Any, keys: Iterable[str] = ()) -> None:
        if value is not None and value.failed:
            raise RuntimeError(f"{name}: {len(value.failed)} leases were not renewed: {value.failed[0][1]}")
        stopwatch.is_armed = True

    client = Client(HttpTransport(load_kubeconfig([server.kubeconfig])), observe=stopwatch.observe)
    with inputs.listening() as changed:
        context = LoopContext(client, lambda _key: ALWAYS, SystemClock(), stopped, _NO_VIEW, publish, changed, inputs)
        task = asyncio.create_task(renew(context))
        try:
            async with asyncio.timeout(ROUND_SECONDS):
                await stopwatch.is_done.wait()
        finally:
            stopped.set()
            await task
            await client.close()
    return stopwatch.numbers


_NO_VIEW: Any = None


async def _renew_raw(server: RunningServer, leases: int) -> Numbers:
    query = f"?fieldManager={names.MANAGER}&fieldValidation=Strict"
    body = encode({"spec": {"renewTime": format_rfc3339_micro(datetime.now(UTC))}})
    calls = [Call("PATCH", f"{LEASES.path(LEASE_NAMESPACE, name)}{query}", body, MERGE) for name in lease_names(leases)]
    async with connect(server.target, IN_FLIGHT) as session:
        before = time.process_time()
        seconds = await send_all(session, calls, IN_FLIGHT)
        return _numbers(leases, seconds, time.process_time() - before)


def lease_names(count: int) -> list[str]:
    return [f"leased-{number:05d}" for number in range(count)]


def _numbers(count: int, seconds: float, cpu: float) -> Numbers:
    return {RATE: count / seconds, CPU_PER_RENEWAL: cpu / count * 1000}
