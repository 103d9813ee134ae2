"""Metrics of each leaf: the lease loop measures contact and lease ages, each reconcile the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.clustertree.leases.metrics import LeaseMetrics
from nodeyard.capabilities.clustertree.planning.ownership import mirrors_of
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.plan.model import Plan
from nodeyard.process.metrics import Metrics

LAG_SECONDS: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""Buckets, finest around the targets: 0.2 s for a quiet node, 2 s under steady change."""
_LABELS: Final = ("cluster",)
_HELP: Final = {
    "mirrors": "Nodes of the root that mirror the leaf",
    "nodes": "Nodes of the leaf, as last listed",
    "unacknowledged_pods": "Pods bound to the leaf's mirrored nodes and not acknowledged for a minute",
}
_FOLLOWED: Final = frozenset({Reason.RESOURCES_CHANGED, Reason.CONDITIONS_CHANGED, Reason.NODE_UPDATED})
"""Reasons of writes by which a node follows its leaf."""


class ClusterMetrics(NamedTuple):
    cluster: str
    gauges: Mapping[str, int]
    node_writes: Sequence[str]
    """The reasons of the writes to mirrored nodes."""
    lag: float | None
    """Seconds from the leaf's event to the write that follows it."""


def measure(snapshot: TreeSnapshot, plan: Plan, outcome: Outcome) -> ClusterMetrics:
    cluster = snapshot.cluster.name
    gauges = {
        "mirrors": len(mirrors_of(snapshot.mirrors, cluster)),
        "nodes": len(snapshot.leaf.nodes),
        "unacknowledged_pods": sum(1 for each in plan.blocked if each.reason == Reason.POD_UNACKNOWLEDGED),
    }
    done = [each.action for each in outcome.results if each.result is Result.DONE]
    reasons = [action.reason for action in done if action.object.kind == "Node"]
    return ClusterMetrics(cluster, gauges, reasons, None if _FOLLOWED.isdisjoint(reasons) else outcome.waited)


class TreeMetrics:
    """Updated after every reconcile of a Cluster."""

    def __init__(self, metrics: Metrics) -> None:
        self.leases = LeaseMetrics(metrics)
        self._gauges = {name: metrics.gauge(f"nodeyard_leaf_{name}", help, _LABELS) for name, help in _HELP.items()}
        self._lag = metrics.histogram(
            "nodeyard_leaf_lag_seconds",
            "Time from a watch event of the leaf to the write in the root",
            _LABELS,
            LAG_SECONDS,
        )
        self._writes = metrics.counter(
            "nodeyard_leaf_node_writes_total",
            "Writes to the leaf's mirrored nodes in the root, by reason",
            (*_LABELS, "reason"),
        )
        self._reasons: dict[str, set[str]] = {}

    def record(self, values: ClusterMetrics) -> None:
        for name, value in values.gauges.items():
            self._gauges[name].labels(values.cluster).set(value)
        for reason in values.node_writes:
            self._writes.labels(values.cluster, reason).inc()
        self._reasons.setdefault(values.cluster, set()).update(values.node_writes)
        if values.lag is not None:
            self._lag.labels(values.cluster).observe(values.lag)

    def forget(self, key: str) -> None:
        """Drop the metrics of a Cluster that is deleted or that another replica owns."""
        for metric in (*self._gauges.values(), self._lag):
            metric.remove(key)
        for reason in self._reasons.pop(key, set()):
            self._writes.remove(key, reason)
