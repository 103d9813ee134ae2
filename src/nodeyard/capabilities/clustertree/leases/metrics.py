"""What is measured of leaves and their leases, by the loop itself: an age grows also while nobody plans.

Ages are worked out when they are scraped, on a thread of the scraper's; what they are asked of never changes in place.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from nodeyard.process.metrics import Metrics


class Result(StrEnum):
    """What became of a lease that was to be renewed."""

    RENEWED = "renewed"
    CREATED = "created"
    FAILED = "failed"


class LeaseMetrics:
    def __init__(self, metrics: Metrics) -> None:
        labels = ("cluster",)
        self._contact = metrics.gauge(
            "nodeyard_leaf_contact_age_seconds", "Time since the leaf last answered a probe", labels
        )
        self._lease = metrics.gauge(
            "nodeyard_leaf_lease_age_seconds",
            "Time since the lease of one of the leaf's live nodes was renewed, the longest of all",
            labels,
        )
        self._renewals = metrics.counter(
            "nodeyard_leaf_lease_renewals_total",
            "Leases of the leaf's nodes that were to be renewed, by what became of it",
            (*labels, "result"),
        )

    def follow(self, cluster: str, contact_age: Callable[[], float], lease_age: Callable[[], float]) -> None:
        self._contact.labels(cluster).set_function(contact_age)
        self._lease.labels(cluster).set_function(lease_age)

    def count(self, cluster: str, result: Result, times: int = 1) -> None:
        self._renewals.labels(cluster, result.value).inc(times)

    def forget(self, cluster: str) -> None:
        """We do not look after this leaf any more."""
        for gauge in (self._contact, self._lease):
            gauge.remove(cluster)
        for result in Result:
            self._renewals.remove(cluster, result.value)
