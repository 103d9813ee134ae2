"""What is measured of affinity: what was decided about pods, by class, and how the classes stand."""

from __future__ import annotations

from typing import Any, Final

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot
from nodeyard.plan.model import Plan
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.webhooks import Review, Verdict

_CLASS: Final = ("affinity_class",)
_HELP: Final = {
    "nodes": "Nodes that are in the class.",
    "users": "Tenants and applications that name the class.",
    "violators": "Running pods of the class that may be outside of it.",
}


class AffinityMetrics:
    """Told of every pass and of every review; a class's series go with it."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = {
            name: metrics.gauge(f"nodeyard_affinity_class_{name}", help, _CLASS) for name, help in _HELP.items()
        }
        self._reviews = metrics.counter(
            "nodeyard_affinity_reviews_total",
            "Pods that were judged at admission, by the class they were judged by (empty: none), what was decided "
            "(allowed, warned, audited, denied) and why.",
            ("affinity_class", "decision", "reason"),
        )
        self._known: set[str] = set()
        self._seen: dict[str, set[tuple[str, str]]] = {}

    def __call__(self, snapshot: Any, plan: Plan, outcome: Outcome) -> None:
        if not isinstance(snapshot, ClassSnapshot):
            return
        name = snapshot.affinity_class.name
        self._known.add(name)
        values = {
            "nodes": sum(snapshot.zones.values()),
            "users": len(snapshot.users),
            "violators": len(snapshot.violators),
        }
        for each, value in values.items():
            self._gauges[each].labels(name).set(value)

    def reviewed(self, review: Review, verdict: Verdict) -> None:
        facts = verdict.facts
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
