"""What is measured of pools, by cluster and pool."""

from __future__ import annotations

from typing import Any

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.status import pool_statuses
from nodeyard.capabilities.pools.types import PoolPhase
from nodeyard.plan.model import Plan
from nodeyard.process.metrics import Metrics

_LABELS = ("cluster", "pool")
_HELP = {
    "desired": "Nodes that the pool shall have",
    "replicas": "Machines that the pool has",
    "ready": "Machines of the pool that are ready",
    "available": "Machines of the pool that have been ready for long enough",
    "up_to_date": "Machines of the pool that are as the spec says",
    "blocked": "Whether the pool cannot be brought to what the spec says",
    "draining": "Whether the pool is being removed",
}
_LEAVING = (PoolPhase.DRAINING.value, PoolPhase.DELETING.value)


class PoolsMetrics:
    """Called with every pass of a cluster; series of pools that are gone go with them."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = {name: metrics.gauge(f"nodeyard_pool_{name}", help, _LABELS) for name, help in _HELP.items()}
        self._known: dict[str, set[str]] = {}

    def __call__(self, snapshot: Any, plan: Plan, outcome: Outcome) -> None:
        if not isinstance(snapshot, PoolsSnapshot):
            return
        cluster, pools = snapshot.cluster.name, pool_statuses(snapshot, plan, outcome)
        for id, pool in pools.items():
            values = {
                "desired": pool.desired,
                "replicas": pool.replicas,
                "ready": pool.ready,
                "available": pool.available,
                "up_to_date": pool.up_to_date,
                "blocked": pool.phase == PoolPhase.BLOCKED.value,
                "draining": pool.phase in _LEAVING,
            }
            for name, value in values.items():
                self._gauges[name].labels(cluster, id).set(value)
        self._keep(cluster, set(pools))

    def forget(self, key: str) -> None:
        """The cluster of this key is gone."""
        self._keep(key.removeprefix(names.cluster_key("")), set())

    def _keep(self, cluster: str, pools: set[str]) -> None:
        for id in self._known.pop(cluster, set()) - pools:
            for gauge in self._gauges.values():
                gauge.remove(cluster, id)
        if pools:
            self._known[cluster] = pools
