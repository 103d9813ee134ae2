"""Metrics of affinity: admission decisions about pods, and nodes, users and violators of each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot, Snapshot
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse

_CLASS: Final = ("affinity_class",)
_HELP: Final = {
    "nodes": "Number of nodes in the class.",
    "users": "Number of tenants and applications that use the class.",
    "violators": "Number of running pods of the class that could run outside it.",
}


class ClassMetrics(NamedTuple):
    name: str
    gauges: Mapping[str, int]


def measure(snapshot: Snapshot) -> ClassMetrics | None:
    if not isinstance(snapshot, ClassSnapshot):
        return None
    gauges = {
        "nodes": sum(snapshot.zones.values()),
        "users": len(snapshot.users),
        "violators": snapshot.violator_count,
    }
    return ClassMetrics(snapshot.affinity_class.name, gauges)


class AffinityMetrics:
    """Records every reconcile of a class and every pod review; removes the series of a deleted class."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = {
            name: metrics.gauge(f"nodeyard_affinity_class_{name}", help, _CLASS) for name, help in _HELP.items()
        }
        self._reviews = metrics.counter(
            "nodeyard_affinity_reviews_total",
            "Pods checked at admission, by AffinityClass (empty: none), decision (allowed, warned, audited, denied) "
            "and reason.",
            ("affinity_class", "decision", "reason"),
        )
        self._known: set[str] = set()
        self._seen: dict[str, set[tuple[str, str]]] = {}

    def record(self, values: ClassMetrics) -> None:
        self._known.add(values.name)
        for each, value in values.gauges.items():
            self._gauges[each].labels(values.name).set(value)

    def record_review(self, request: AdmissionRequest, response: AdmissionResponse) -> None:
        facts = response.facts
        if "decision" not in facts:
            return
        name, counted = facts.get("class", ""), (facts["decision"], facts.get("reason", ""))
        self._seen.setdefault(name, set()).add(counted)
        self._reviews.labels(name, *counted).inc()

    def forget(self, key: str) -> None:
        if not key.startswith(names.CLASS_KEY_PREFIX):
            return
        name = key.removeprefix(names.CLASS_KEY_PREFIX)
        for counted in self._seen.pop(name, ()):
            self._reviews.remove(name, *counted)
        if name in self._known:
            self._known.discard(name)
            for gauge in self._gauges.values():
                gauge.remove(name)
