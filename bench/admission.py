"""The pod webhooks under load, compared with an empty webhook in the same process.

The operator runs in a process of its own on the embedded API server, with 500 applications in its caches. This
process sends reviews of 5,000 different pods over TLS, 64 in flight. With warm caches no review may read from the API
server.
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
from bench.harness import Contestant, Numbers, Requirement, Result, compare
from bench.load import Target, connect, send_all
from bench.operator import Counters
from bench.servers import RunningServer, cpu_seconds, embedded
from bench.webhook_load import WebhookClient, send_reviews
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
        reviews = list(fleet.reviews(asyncio.run(_create_workloads(server.target))))
        with _run_operator(server, Path(folder)) as operator:
            asyncio.run(_create_classes(server.target))
            yield _compare(operator, reviews)


def _compare(operator: _Operator, reviews: list[bytes]) -> Result:
    return compare(
        "admission",
        [Contestant(name, _load(operator, path, reviews)) for name, path in PATHS.items()],
        requirements=[requirement for name in OURS for requirement in _requirements(name)],
    )


def _requirements(name: str) -> Iterable[Requirement]:
    yield Requirement("requests per second", name, EMPTY, at_least=0.6)
    yield Requirement("p99 ms", name, EMPTY, at_most=3)
    yield Requirement("API calls", name, at_most=0)


def _load(operator: _Operator, path: str, reviews: list[bytes]) -> Callable[[], Numbers]:
    def measure() -> Numbers:
        lookups, used = operator.lookups(), operator.cpu_seconds()
        result = send_reviews(operator.client, path, reviews, IN_FLIGHT, b'"allowed":true')
        return {
            "requests per second": result.rate,
            "p50 ms": result.percentile(0.5),
            "p99 ms": result.percentile(0.99),
            "CPU microseconds": (operator.cpu_seconds() - used) / len(reviews) * 1e6,
            "API calls": operator.lookups() - lookups,
        }

    return measure


# the cluster


async def _create_workloads(target: Target) -> dict[str, str]:
    """Create all owners of the pods; return the uids of the ReplicaSets by namespace and name."""
    async with connect(target, IN_FLIGHT) as session:
        for calls in (fleet.crds_and_namespaces(), fleet.releases(), fleet.deployments()):
            await send_all(session, calls, IN_FLIGHT)
        await send_all(session, fleet.replica_sets(await _uids(session, "deployments")), IN_FLIGHT)
        return await _uids(session, "replicasets")


async def _uids(session: aiohttp.ClientSession, plural: str) -> dict[str, str]:
    async with session.get(f"/apis/apps/v1/{plural}") as response:
        found = [each["metadata"] for each in json.loads(await response.read())["items"]]
    return {f"{each['namespace']}/{each['name']}": each["uid"] for each in found}


async def _create_classes(target: Target) -> None:
    """Create the placement classes, after the operator has installed their CRD."""
    async with connect(target, IN_FLIGHT) as session:
        await send_all(session, fleet.classes(), IN_FLIGHT)


# the operator


@dataclass(frozen=True)
class _Operator:
    process: Process
    address: str
    client: WebhookClient

    def is_ready(self) -> bool:
        if not self.process.is_alive():
            raise RuntimeError(f"the operator has ended:\n{self.process.tail()}")
        try:
            with urllib.request.urlopen(f"{self.address}/readyz", timeout=10):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def lookups(self) -> float:
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=10) as response:
            return Counters(response.read().decode()).total("nodeyard_webhook_lookups_total")

    def cpu_seconds(self) -> float:
        return cpu_seconds([self.process.pid or 0])


@contextmanager
def _run_operator(server: RunningServer, folder: Path) -> Iterator[_Operator]:
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
    client = WebhookClient(port, issue.authority, folder / "caller.pem")
    operator = _Operator(process, f"http://{LOOPBACK}:{health}", client)
    try:
        until(operator.is_ready, "the operator serves", 60)
        yield operator
    finally:
        process.stop()
