"""What is measured of each leaf: by the lease loop how old contact and leases are, by each pass what it showed."""

from __future__ import annotations

from typing import Final

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.clustertree.leases.metrics import LeaseMetrics
from nodeyard.capabilities.clustertree.planning.ownership import ours
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.plan.model import Plan
from nodeyard.process.metrics import Metrics

LAG_SECONDS: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""Finest where it is to be: 0.2 s for a quiet node, 2 s under steady change."""
_LABELS: Final = ("cluster",)
_HELP: Final = {
    "mirrors": "Nodes of the root that mirror the leaf",
    "nodes": "Nodes that the leaf has, as last seen",
    "unacknowledged_pods": "Pods bound to its mirrored nodes that nobody has acknowledged for a minute",
}
_FOLLOWED: Final = frozenset({Reason.RESOURCES_CHANGED, Reason.CONDITIONS_CHANGED, Reason.NODE_UPDATED})
"""Writes by which a node follows its leaf."""


class TreeMetrics:
    """Called with every pass over a Cluster."""

    def __init__(self, metrics: Metrics) -> None:
        self.leases = LeaseMetrics(metrics)
        self._gauges = {name: metrics.gauge(f"nodeyard_leaf_{name}", help, _LABELS) for name, help in _HELP.items()}
        self._lag = metrics.histogram(
            "nodeyard_leaf_lag_seconds", "Time from an event of the leaf to its write in the root", _LABELS, LAG_SECONDS
        )
        self._writes = metrics.counter(
            "nodeyard_leaf_node_writes_total", "Writes of the leaf's nodes in the root", (*_LABELS, "reason")
        )
        self._reasons: dict[str, set[str]] = {}

    def __call__(self, snapshot: TreeSnapshot, plan: Plan, outcome: Outcome) -> None:
        cluster = snapshot.cluster.name
        waiting = sum(1 for each in plan.blocked if each.reason == Reason.POD_UNACKNOWLEDGED)
        values = {
            "mirrors": len(ours(snapshot.mirrors, cluster)),
            "nodes": len(snapshot.leaf.nodes),
            "unacknowledged_pods": waiting,
        }
        for name, value in values.items():
            self._gauges[name].labels(cluster).set(value)
        done = [each.action for each in outcome.results if each.result is Result.DONE]
        reasons = [action.reason for action in done if action.object.kind == "Node"]
        for reason in reasons:
            self._writes.labels(cluster, reason).inc()
        self._reasons.setdefault(cluster, set()).update(reasons)
        if outcome.waited is not None and not _FOLLOWED.isdisjoint(reasons):
            self._lag.labels(cluster).observe(outcome.waited)

    def forget(self, key: str) -> None:
        """The Cluster is gone, or another replica looks after it."""
        for metric in (*self._gauges.values(), self._lag):
            metric.remove(key)
        for reason in self._reasons.pop(key, set()):
            self._writes.remove(key, reason)
