"""Metrics of leaves and their leases, kept by the lease loop, because ages grow without reconciles.

Ages are computed at scrape time on the scraper's thread; the values that they read are never mutated.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from nodeyard.process.metrics import Metrics


class Result(StrEnum):
    """Result of one lease renewal."""

    RENEWED = "renewed"
    CREATED = "created"
    FAILED = "failed"


class LeaseMetrics:
    def __init__(self, metrics: Metrics) -> None:
        labels = ("cluster",)
        self._contact = metrics.gauge(
            "nodeyard_leaf_contact_age_seconds", "Time since the leaf last responded to a probe", labels
        )
        self._lease = metrics.gauge(
            "nodeyard_leaf_lease_age_seconds",
            "Time since the last renewal of the oldest lease of the leaf's live nodes",
            labels,
        )
        self._renewals = metrics.counter(
            "nodeyard_leaf_lease_renewals_total",
            "Lease renewals of the leaf's nodes, by result",
            (*labels, "result"),
        )

    def follow(self, cluster: str, contact_age: Callable[[], float], lease_age: Callable[[], float]) -> None:
        self._contact.labels(cluster).set_function(contact_age)
        self._lease.labels(cluster).set_function(lease_age)

    def count(self, cluster: str, result: Result, times: int = 1) -> None:
        self._renewals.labels(cluster, result.value).inc(times)

    def forget(self, cluster: str) -> None:
        """Drop the metrics of a leaf that this replica no longer owns."""
        for gauge in (self._contact, self._lease):
            gauge.remove(cluster)
        for result in Result:
            self._renewals.remove(cluster, result.value)
