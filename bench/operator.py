"""Runs the operator in a process of its own, and reads its writes, metrics, CPU time and memory."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from bench.load import Call
from bench.recorder import FLUSH_SECONDS
from bench.replay import read_record
from bench.servers import cpu_seconds
from nodeyard.testing.ports import LOOPBACK, free_port
from nodeyard.testing.processes import Process
from nodeyard.testing.wait import until

_WRITES = ("create", "patch", "apply", "update", "delete", "evict")


class Counters:
    """One scrape of /metrics."""

    def __init__(self, text: str) -> None:
        self._samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def total(self, name: str, without: Mapping[str, str] | None = None, **labels: str) -> float:
        """Return the sum of all series with `labels`, except those with a label of `without`."""
        return sum(
            sample.value
            for sample in self._samples
            if sample.name == name
            and all(sample.labels.get(label) == value for label, value in labels.items())
            and not any(sample.labels.get(label) == value for label, value in (without or {}).items())
        )

    @property
    def writes(self) -> float:
        """Return the number of API writes, except those of Leases."""
        ours = {"resource": "leases.coordination.k8s.io"}
        return sum(self.total("nodeyard_client_requests_total", ours, verb=verb) for verb in _WRITES)

    @property
    def plans(self) -> float:
        return self.total("nodeyard_plan_seconds_count")

    @property
    def passes(self) -> float:
        return self.total("nodeyard_reconciles_total")


@dataclass(frozen=True)
class Operator:
    process: Process
    record: Path
    address: str

    def counters(self) -> Counters:
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=10) as response:
            return Counters(response.read().decode())

    async def recorded_writes(self) -> list[Call]:
        """Return all writes so far. Waits until the recorder has flushed them."""
        await asyncio.sleep(2 * FLUSH_SECONDS)
        return read_record(self.record)

    def cpu_seconds(self) -> float:
        return cpu_seconds([self.process.pid or 0])

    def peak_mb(self) -> float:
        return peak_mb(self.process.pid)

    def is_leading(self) -> bool:
        """Return whether the caches are synced and the process is the leader."""
        if not self.process.is_alive():
            raise RuntimeError(f"the operator has ended:\n{self.process.tail()}")
        try:
            with urllib.request.urlopen(f"{self.address}/readyz", timeout=10):
                return self.counters().total("nodeyard_leader") == 1
        except (urllib.error.URLError, OSError):
            return False


def peak_mb(process: int | None) -> float:
    """Return the peak resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


@contextmanager
def run_operator(kubeconfig: Path, capability: str) -> Iterator[Operator]:
    """Run one capability without webhooks; yields when its caches are synced and it leads."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        address = f"{LOOPBACK}:{free_port()}"
        process = Process("operator", folder / "operator.log")
        operator = Operator(process, folder / "writes.jsonl", f"http://{address}")
        options: list[str | Path] = ["--kubeconfig", kubeconfig, "--capabilities", capability]
        binds = ["--metrics-bind", address, "--health-bind", address, "--webhook-bind", "0"]
        process.start([sys.executable, "-m", "bench.recorder", operator.record, "run", *options, *binds])
        try:
            until(operator.is_leading, "the operator leads", 60)
            yield operator
        finally:
            process.stop()
