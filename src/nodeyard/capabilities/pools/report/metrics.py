"""Metrics of pools, labelled by cluster and pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.report.status import Account
from nodeyard.capabilities.pools.types import PoolPhase, WorkerPoolStatus
from nodeyard.process.metrics import Metrics

_LABELS = ("cluster", "pool")
_HELP = {
    "desired": "Desired nodes of the pool",
    "replicas": "Machines of the pool",
    "ready": "Ready Machines of the pool",
    "available": "Machines of the pool that have been ready for minReadySeconds",
    "up_to_date": "Machines of the pool created from its current template and version",
    "blocked": "1 if the pool is blocked: it cannot reach its spec",
    "draining": "1 while the pool is being removed",
}
_REMOVAL_PHASES = (PoolPhase.DRAINING.value, PoolPhase.DELETING.value)


class PoolMetrics(NamedTuple):
    cluster: str
    pools: Mapping[str, WorkerPoolStatus]


def measure(account: Account) -> PoolMetrics:
    return PoolMetrics(account.snapshot.cluster.name, account.pool_statuses)


class PoolsMetrics:
    """Updated after every reconcile of a LatticeCluster; series of removed pools are deleted."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = {name: metrics.gauge(f"nodeyard_pool_{name}", help, _LABELS) for name, help in _HELP.items()}
        self._known: dict[str, set[str]] = {}

    def record(self, values: PoolMetrics) -> None:
        for id, pool in values.pools.items():
            gauges = {
                "desired": pool.desired,
                "replicas": pool.replicas,
                "ready": pool.ready,
                "available": pool.available,
                "up_to_date": pool.up_to_date,
                "blocked": pool.phase == PoolPhase.BLOCKED.value,
                "draining": pool.phase in _REMOVAL_PHASES,
            }
            for name, value in gauges.items():
                self._gauges[name].labels(values.cluster, id).set(value)
        self._keep(values.cluster, set(values.pools))

    def forget(self, key: str) -> None:
        """Delete the series of a LatticeCluster that no longer exists."""
        self._keep(key.removeprefix(names.cluster_key("")), set())

    def _keep(self, cluster: str, pools: set[str]) -> None:
        for id in self._known.pop(cluster, set()) - pools:
            for gauge in self._gauges.values():
                gauge.remove(cluster, id)
        if pools:
            self._known[cluster] = pools
