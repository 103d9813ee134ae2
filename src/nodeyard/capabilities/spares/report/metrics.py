"""nyallocator's metrics under their original names, so that dashboards and alerts keep working.

The metrics are set before the status is written: when `observedGeneration` is current, so are they.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from nodeyard.capabilities.spares.planning.partition import SpareIndex
from nodeyard.capabilities.spares.report.status import Account, success, sufficient
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_spare
from nodeyard.process.metrics import Metrics

_TEMPLATE = ("nodetemplate",)
_ANNOTATION = ("nodetemplate", "key", "value")


_HELP = {
    "current_nodes": "Number of nodes under the NodeTemplate",
    "desired_nodes": "Number of nodes specified in the NodeTemplate",
    "spare_nodes": "Number of spare nodes matching the NodeTemplate",
    "sufficient_nodes": "Whether number of nodes under the NodeTemplate is sufficient or not",
    "reconcile_success": "Whether reconciliations of the NodeTemplate is successful or not",
}


class TemplateMetrics(NamedTuple):
    name: str
    gauges: Mapping[str, float]
    annotations: Mapping[str, str]


def measure(snapshot: SparesSnapshot, accounts: Collection[Account]) -> Sequence[TemplateMetrics]:
    spares = [node for node in snapshot.nodes if is_spare(node)]
    index = SpareIndex(spares, {}, [account.resolved.selector for account in accounts])
    owned = {node for account in accounts for node in account.nodes}
    found = []
    for account in accounts:
        matching = index.matching(account.resolved.selector)
        gauges = {
            "current_nodes": len(account.nodes),
            "desired_nodes": account.template.spec.nodes,
            "spare_nodes": sum(1 for spare in matching if spare.name not in owned),
            "sufficient_nodes": sufficient(account).status == "True",
            "reconcile_success": success(account).status == "True",
        }
        found.append(TemplateMetrics(account.template.name, gauges, account.template.metadata.annotations))
    return found


class SparesMetrics:
    """Updated with every reconcile; removes the series of deleted templates."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = {
            name: metrics.gauge(f"nyallocator_{name}", help, _TEMPLATE, is_foreign=True) for name, help in _HELP.items()
        }
        self._annotations = metrics.gauge(
            "nyallocator_annotations", "Annotations of the NodeTemplate", _ANNOTATION, is_foreign=True
        )
        self._known: set[str] = set()
        self._annotation_series: set[tuple[str, str, str]] = set()

    def record(self, values: Sequence[TemplateMetrics]) -> None:
        annotations: set[tuple[str, str, str]] = set()
        for each in values:
            for metric, value in each.gauges.items():
                self._gauges[metric].labels(each.name).set(value)
            annotations.update((each.name, key, value) for key, value in each.annotations.items())
        self._sync_series({each.name for each in values}, annotations)

    def forget(self, _key: str) -> None:
        """Do nothing: the one key never goes, and the next reconcile removes the series of deleted templates."""

    def _sync_series(self, names: set[str], annotations: set[tuple[str, str, str]]) -> None:
        for name in self._known - names:
            for gauge in self._gauges.values():
                gauge.remove(name)
        for series in self._annotation_series - annotations:
            self._annotations.remove(*series)
        for series in annotations - self._annotation_series:
            self._annotations.labels(*series).set(1)
        self._known, self._annotation_series = names, annotations
