"""The webhooks of pods under load, next to an empty one in the same process: what a review costs beyond being asked.

The operator runs in a process of its own against the embedded API server, with 500 applications in its caches; the
questions come from here, over TLS, 64 in flight, about 5,000 pods that differ. Once the caches are warm no review may
read anything from the API server.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp

from bench import admission_fleet as fleet
from bench.asking import Asker, ask
from bench.harness import Contestant, Numbers, Requirement, Result, compete
from bench.load import Target, send, session
from bench.operator import Counters
from bench.servers import Running, cpu_seconds, embedded
from nodeyard.admission.certificates import IssuedCertificate
from nodeyard.capabilities.affinity import names
from nodeyard.process.certificates import Authority
from nodeyard.testing.ports import LOOPBACK, free_port
from nodeyard.testing.processes import Process
from nodeyard.testing.wait import until

IN_FLIGHT = 64
EMPTY = "empty"
PATHS = {
    "placement": f"/validate/{names.CAPABILITY}/placement-tenants",
    "lineage": f"/mutate/{names.CAPABILITY}/lineage-tenants",
    EMPTY: f"/validate/{names.CAPABILITY}/empty",
}
OURS = ("placement", "lineage")


def run() -> Iterator[Result]:
    with embedded() as server, tempfile.TemporaryDirectory() as folder:
        questions = list(fleet.questions(asyncio.run(_settle(server.target))))
        with _operator(server, Path(folder)) as operator:
            asyncio.run(_classify(server.target))
            yield _compete(operator, questions)


def _compete(operator: _Operator, questions: list[bytes]) -> Result:
    return compete(
        "admission",
        [Contestant(name, _asking(operator, path, questions)) for name, path in PATHS.items()],
        requirements=[requirement for name in OURS for requirement in _requirements(name)],
    )


def _requirements(name: str) -> Iterable[Requirement]:
    yield Requirement("requests per second", name, EMPTY, at_least=0.6)
    yield Requirement("p99 ms", name, EMPTY, at_most=3)
    yield Requirement("API calls", name, at_most=0)


def _asking(operator: _Operator, path: str, questions: list[bytes]) -> Callable[[], Numbers]:
    def measure() -> Numbers:
        lookups, used = operator.lookups(), operator.cpu_seconds()
        asked = ask(operator.asker, path, questions, IN_FLIGHT, b'"allowed":true')
        return {
            "requests per second": asked.rate,
            "p50 ms": asked.percentile(0.5),
            "p99 ms": asked.percentile(0.99),
            "CPU microseconds": (operator.cpu_seconds() - used) / len(questions) * 1e6,
            "API calls": operator.lookups() - lookups,
        }

    return measure


# the cluster


async def _settle(target: Target) -> dict[str, str]:
    """Everything that owns the pods; the uids of the ReplicaSets, by namespace and name."""
    async with session(target, IN_FLIGHT) as opened:
        for calls in (fleet.foundations(), fleet.releases(), fleet.deployments()):
            await send(opened, calls, IN_FLIGHT)
        await send(opened, fleet.replica_sets(await _uids(opened, "deployments")), IN_FLIGHT)
        return await _uids(opened, "replicasets")


async def _uids(opened: aiohttp.ClientSession, plural: str) -> dict[str, str]:
    async with opened.get(f"/apis/apps/v1/{plural}") as answer:
        found = [each["metadata"] for each in json.loads(await answer.read())["items"]]
    return {f"{each['namespace']}/{each['name']}": each["uid"] for each in found}


async def _classify(target: Target) -> None:
    """The classes, whose kind is the operator's."""
    async with session(target, IN_FLIGHT) as opened:
        await send(opened, fleet.classes(), IN_FLIGHT)


# the operator


@dataclass(frozen=True)
class _Operator:
    process: Process
    address: str
    asker: Asker

    def is_ready(self) -> bool:
        if not self.process.is_alive():
            raise RuntimeError(f"the operator has ended:\n{self.process.tail()}")
        try:
            with urllib.request.urlopen(f"{self.address}/readyz", timeout=10):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def lookups(self) -> float:
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=10) as answer:
            return Counters(answer.read().decode()).total("nodeyard_webhook_lookups_total")

    def cpu_seconds(self) -> float:
        return cpu_seconds([self.process.pid or 0])


@contextmanager
def _operator(server: Running, folder: Path) -> Iterator[_Operator]:
    issue = IssuedCertificate.make([LOOPBACK], timedelta(days=1), datetime.now(UTC))
    (folder / "tls.crt").write_bytes(issue.pair.certificate)
    (folder / "tls.key").write_bytes(issue.pair.key)
    (folder / "ca.crt").write_bytes(issue.authority)
    callers = Authority("api-servers")
    (folder / "callers.crt").write_bytes(callers.pem)
    caller = callers.client("kube-apiserver")
    (folder / "caller.pem").write_bytes(caller.certificate + caller.key)
    port, health = free_port(), free_port()
    process = Process("operator", folder / "operator.log")
    process.start([sys.executable, "-m", "bench.admission_operator", server.kubeconfig, folder, str(port), str(health)])
    asker = Asker(port, issue.authority, folder / "caller.pem")
    operator = _Operator(process, f"http://{LOOPBACK}:{health}", asker)
    try:
        until(operator.is_ready, "the operator serves", 60)
        yield operator
    finally:
        process.stop()
