"""Prometheus metrics of a process, in a registry of its own so that tests can create several.

Rendering thousands of series takes milliseconds, so it is done in a thread and never holds up the event loop. Bind
labels once, where their values are known, not on each increment.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from nodeyard.process.version import VERSION

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Buckets from a cached read to a write that waits for a webhook.
SECONDS: tuple[float, ...] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


@dataclass(frozen=True, slots=True)
class Described:
    """One metric, for the generated documentation."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]


class _Filled(Collector):
    """The families of a registry that have series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        return (family for family in self._registry.collect() if family.samples)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._described: dict[str, Described] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        self._describe(Described(name, "counter", help, tuple(labels)))
        return Counter(name, help, labels, registry=self.registry)

    def gauge(self, name: str, help: str, labels: Sequence[str] = (), *, is_foreign: bool = False) -> Gauge:
        """`is_foreign`: the name belongs to a replaced operator and is kept for its dashboards."""
        self._describe(Described(name, "gauge", help, tuple(labels)), is_foreign=is_foreign)
        return Gauge(name, help, labels, registry=self.registry)

    def histogram(
        self, name: str, help: str, labels: Sequence[str] = (), buckets: Sequence[float] = SECONDS
    ) -> Histogram:
        self._describe(Described(name, "histogram", help, tuple(labels)))
        return Histogram(name, help, labels, buckets=buckets, registry=self.registry)

    def expose_process(self) -> None:
        """Expose the version, and the metrics of the process that clients of Prometheus have in common."""
        build = self.gauge("nodeyard_build_info", "1, with the versions of Nodeyard and Python.", ("version", "python"))
        build.labels(VERSION, platform.python_version()).set(1)
        for family in ProcessCollector(registry=self.registry).collect():
            kind: Literal["counter", "gauge"] = "counter" if family.type == "counter" else "gauge"
            name = f"{family.name}_total" if kind == "counter" else family.name
            self._describe(Described(name, kind, family.documentation, ()), is_foreign=True)

    def described(self) -> Iterator[Described]:
        """Return all metrics, by name."""
        for name in sorted(self._described):
            yield self._described[name]

    async def render(self) -> bytes:
        """Render the text that Prometheus scrapes. A family without series prints nothing, as in Go's client, so that
        `absent()` works."""
        return await asyncio.to_thread(generate_latest, _Filled(self.registry))

    def _describe(self, metric: Described, *, is_foreign: bool = False) -> None:
        if not is_foreign and not metric.name.startswith("nodeyard_"):
            raise ValueError(f"metric {metric.name}: the name must begin with nodeyard_")
        self._described[metric.name] = metric
