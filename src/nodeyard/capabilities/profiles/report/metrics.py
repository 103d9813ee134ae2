"""Metrics of profiles: number of nodes, and progress of the rollout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nodeyard.capabilities.profiles.snapshot import ProfileSnapshot, StatusSnapshot
from nodeyard.process.metrics import Metrics

_LABELS = ("service", "namespace", "profile")
_HELP = {
    "nodes": "Nodes with the profile",
    "updated": "Service objects with the current generation of the profile",
    "available": "Available service objects of the profile",
}


class ProfileMetrics(NamedTuple):
    labels: tuple[str, str, str]
    gauges: Mapping[str, int]


def measure(snapshot: StatusSnapshot) -> ProfileMetrics | None:
    if not isinstance(snapshot, ProfileSnapshot):
        return None
    metadata = snapshot.raw["metadata"]
    gauges = {"nodes": snapshot.node_count, "updated": snapshot.updated, "available": snapshot.rollout.available}
    return ProfileMetrics((snapshot.service.name, metadata["namespace"], metadata["name"]), gauges)


class ProfilesMetrics:
    """Sets gauges on each reconcile; the series of a profile are removed with it."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = {name: metrics.gauge(f"nodeyard_profile_{name}", help, _LABELS) for name, help in _HELP.items()}
        self._known: set[tuple[str, str, str]] = set()

    def record(self, values: ProfileMetrics) -> None:
        self._known.add(values.labels)
        for name, value in values.gauges.items():
            self._gauges[name].labels(*values.labels).set(value)

    def forget(self, key: str) -> None:
        kind, _, rest = key.partition("/")
        labels = tuple(rest.split("/"))
        if kind != "profile" or labels not in self._known:
            return
        self._known.discard((labels[0], labels[1], labels[2]))
        for gauge in self._gauges.values():
            gauge.remove(*labels)
