"""nyallocator's metrics under their own names, so that dashboards and alerts keep working.

Set after a pass and before its status is written: whoever reads them when the status has caught up reads the truth.
"""

from __future__ import annotations

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.spares.planning.stock import Stock
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_spare
from nodeyard.capabilities.spares.status import accounts, success, sufficient
from nodeyard.plan.model import Plan
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


class SparesMetrics:
    """Called with every pass; series of templates that are gone go with them."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = {
            name: metrics.gauge(f"nyallocator_{name}", help, _TEMPLATE, is_foreign=True) for name, help in _HELP.items()
        }
        self._annotations = metrics.gauge(
            "nyallocator_annotations", "Annotations of the NodeTemplate", _ANNOTATION, is_foreign=True
        )
        self._known: set[str] = set()
        self._annotated: set[tuple[str, str, str]] = set()

    def __call__(self, snapshot: SparesSnapshot, plan: Plan, outcome: Outcome) -> None:
        books = list(accounts(snapshot, plan, outcome))
        spares = [node for node in snapshot.nodes if is_spare(node)]
        stock = Stock(spares, {}, [account.resolved.selector for account in books])
        taken = {node for account in books for node in account.nodes}
        annotated: set[tuple[str, str, str]] = set()
        for account in books:
            name, matching = account.template.name, stock.matching(account.resolved.selector)
            values = {
                "current_nodes": len(account.nodes),
                "desired_nodes": account.template.spec.nodes,
                "spare_nodes": sum(1 for spare in matching if spare.name not in taken),
                "sufficient_nodes": sufficient(account).status == "True",
                "reconcile_success": success(account).status == "True",
            }
            for metric, value in values.items():
                self._gauges[metric].labels(name).set(value)
            annotated.update((name, key, value) for key, value in account.template.metadata.annotations.items())
        self._keep({account.template.name for account in books}, annotated)

    def forget(self, _key: str) -> None:
        """All templates share one key, which never goes; those that are gone go with the next pass."""

    def _keep(self, names: set[str], annotated: set[tuple[str, str, str]]) -> None:
        for name in self._known - names:
            for gauge in self._gauges.values():
                gauge.remove(name)
        for series in self._annotated - annotated:
            self._annotations.remove(*series)
        for series in annotated - self._annotated:
            self._annotations.labels(*series).set(1)
        self._known, self._annotated = names, annotated
