"""What is measured of profiles: how many nodes have each, and how far they are."""

from __future__ import annotations

from typing import Any

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.profiles.memberships import ProfileSnapshot
from nodeyard.plan.model import Plan
from nodeyard.process.metrics import Metrics

_LABELS = ("service", "namespace", "profile")
_HELP = {
    "nodes": "Nodes that choose the profile",
    "updated": "Service objects that have the profile as it is now",
    "available": "Service objects that run with it, as their operator says",
}


class ProfilesMetrics:
    """Called with every pass; a profile's series go with it."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = {name: metrics.gauge(f"nodeyard_profile_{name}", help, _LABELS) for name, help in _HELP.items()}
        self._known: set[tuple[str, str, str]] = set()

    def __call__(self, snapshot: Any, plan: Plan, outcome: Outcome) -> None:
        if not isinstance(snapshot, ProfileSnapshot):
            return
        metadata = snapshot.raw["metadata"]
        labels = (snapshot.service.name, metadata["namespace"], metadata["name"])
        self._known.add(labels)
        values = {
            "nodes": snapshot.node_count,
            "updated": snapshot.updated,
            "available": snapshot.standing.available,
        }
        for name, value in values.items():
            self._gauges[name].labels(*labels).set(value)

    def forget(self, key: str) -> None:
        kind, _, rest = key.partition("/")
        labels = tuple(rest.split("/"))
        if kind != "profile" or labels not in self._known:
            return
        self._known.discard((labels[0], labels[1], labels[2]))
        for gauge in self._gauges.values():
            gauge.remove(*labels)
