"""Writes the Grafana dashboards of the chart. A test fails if they have drifted.

python -m tools.dashboards
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parents[1] / "charts" / "nodeyard" / "monitoring" / "dashboards"
WIDTH, HEIGHT = 8, 8
"""Three panels in a row of Grafana's 24 columns."""
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    title: str
    expression: str
    legend: str
    unit: str = "short"
    type: Literal["timeseries", "stat"] = "timeseries"


@dataclass(frozen=True)
class Dashboard:
    name: str
    title: str
    panels: Sequence[Panel]
    variable: tuple[str, str] | None = None
    """Label, and the metric whose values of that label can be chosen."""


def _quantile(metric: str, labels: str, selector: str = "", quantile: float = 0.99) -> str:
    rate = f"rate({metric}_bucket{selector}[$__rate_interval])"
    return f"histogram_quantile({quantile}, sum by ({labels}, le) ({rate}))"


def _rate(metric: str, labels: str, selector: str = "") -> str:
    return f"sum by ({labels}) (rate({metric}{selector}[$__rate_interval]))"


def _stat(title: str, expression: str, unit: str = "short") -> Panel:
    return Panel(title, expression, "", unit, "stat")


_OF = '{capability=~"$capability"}'
_LEAF = '{cluster=~"$cluster"}'
_WEBHOOK = '{webhook=~"$webhook"}'

DASHBOARDS: Sequence[Dashboard] = (
    Dashboard(
        "overview",
        "Nodeyard / Overview",
        (
            _stat("Plans held", "sum(max by (capability) (nodeyard_plans_held))"),
            _stat("Capabilities with a leader", "sum(max by (capability) (nodeyard_leader))"),
            _stat("Leaf clusters connected", "sum(max by (capability, cluster) (nodeyard_cluster_connected))"),
            Panel("Versions", "count by (version) (nodeyard_build_info)", "{{version}}"),
            Panel("Leaders", "max by (capability) (nodeyard_leader)", "{{capability}}"),
            Panel("Observe-only mode", "max by (capability, reason) (nodeyard_observing)", "{{capability}} {{reason}}"),
            Panel("Pending actions", "max by (capability) (nodeyard_plan_actions)", "{{capability}}"),
            Panel(
                "Blocked objects",
                "max by (capability, reason) (nodeyard_plan_blocked) > 0",
                "{{capability}} {{reason}}",
            ),
            Panel(
                "Reconciles",
                _rate("nodeyard_reconciles_total", "capability, result"),
                "{{capability}} {{result}}",
                "ops",
            ),
            Panel("Reconcile, 99 %", _quantile("nodeyard_reconcile_seconds", "capability"), "{{capability}}", "s"),
            Panel("API requests", _rate("nodeyard_client_requests_total", "verb, code"), "{{verb}} {{code}}", "reqps"),
            Panel("API requests, 99 %", _quantile("nodeyard_client_request_seconds", "verb"), "{{verb}}", "s"),
            Panel(
                "Stalled informers", "max by (view, resource) (nodeyard_informer_stalled) > 0", "{{view}} {{resource}}"
            ),
            Panel("Memory", "process_resident_memory_bytes", "{{pod}}", "bytes"),
            Panel("CPU", "rate(process_cpu_seconds_total[$__rate_interval])", "{{pod}}", "percentunit"),
        ),
    ),
    Dashboard(
        "capability",
        "Nodeyard / Capability",
        (
            Panel("Leader", f"max by (capability, pod) (nodeyard_leader{_OF})", "{{capability}} {{pod}}"),
            Panel("Plans held", f"max by (capability) (nodeyard_plans_held{_OF})", "{{capability}}"),
            Panel("Keys held", f"sum by (capability, pod) (nodeyard_keys_held{_OF})", "{{capability}} {{pod}}"),
            Panel("Pending actions", f"max by (capability) (nodeyard_plan_actions{_OF})", "{{capability}}"),
            Panel("Blocked objects", f"max by (reason) (nodeyard_plan_blocked{_OF}) > 0", "{{reason}}"),
            Panel("Actions", _rate("nodeyard_actions_total", "verb, result", _OF), "{{verb}} {{result}}", "ops"),
            Panel("Queue", f"max by (capability) (nodeyard_queue_depth{_OF})", "{{capability}}"),
            Panel(
                "Wait in the queue, 99 %",
                _quantile("nodeyard_queue_latency_seconds", "capability", _OF),
                "{{capability}}",
                "s",
            ),
            Panel("Planning, 99 %", _quantile("nodeyard_plan_seconds", "capability", _OF), "{{capability}}", "s"),
            Panel("Reconciles", _rate("nodeyard_reconciles_total", "result", _OF), "{{result}}", "ops"),
            Panel(
                "Reconcile, median",
                _quantile("nodeyard_reconcile_seconds", "capability", _OF, 0.5),
                "{{capability}}",
                "s",
            ),
            Panel("Reconcile, 99 %", _quantile("nodeyard_reconcile_seconds", "capability", _OF), "{{capability}}", "s"),
        ),
        ("capability", "nodeyard_leader"),
    ),
    Dashboard(
        "spares",
        "Nodeyard / Spares",
        (
            Panel("Nodes", "max by (nodetemplate) (nyallocator_current_nodes)", "{{nodetemplate}}"),
            Panel(
                "Missing nodes",
                "max by (nodetemplate) (nyallocator_desired_nodes)"
                " - max by (nodetemplate) (nyallocator_current_nodes) > 0",
                "{{nodetemplate}}",
            ),
            Panel("Spare nodes that match", "max by (nodetemplate) (nyallocator_spare_nodes)", "{{nodetemplate}}"),
            Panel("Sufficient", "max by (nodetemplate) (nyallocator_sufficient_nodes)", "{{nodetemplate}}"),
            Panel("Reconciled", "max by (nodetemplate) (nyallocator_reconcile_success)", "{{nodetemplate}}"),
            Panel("Refusals", 'max by (reason) (nodeyard_plan_blocked{capability="spares"}) > 0', "{{reason}}"),
        ),
    ),
    Dashboard(
        "pools",
        "Nodeyard / Pools",
        (
            Panel("Ready Machines", f"max by (cluster, pool) (nodeyard_pool_ready{_LEAF})", "{{cluster}} {{pool}}"),
            Panel(
                "Missing Machines",
                f"max by (cluster, pool) (nodeyard_pool_desired{_LEAF})"
                f" - max by (cluster, pool) (nodeyard_pool_ready{_LEAF}) > 0",
                "{{cluster}} {{pool}}",
            ),
            Panel("Available", f"max by (cluster, pool) (nodeyard_pool_available{_LEAF})", "{{cluster}} {{pool}}"),
            Panel(
                "Share that is up to date",
                f"max by (cluster, pool) (nodeyard_pool_up_to_date{_LEAF})"
                f" / max by (cluster, pool) (nodeyard_pool_replicas{_LEAF})",
                "{{cluster}} {{pool}}",
                "percentunit",
            ),
            Panel(
                "Blocked pools", f"max by (cluster, pool) (nodeyard_pool_blocked{_LEAF}) > 0", "{{cluster}} {{pool}}"
            ),
            Panel(
                "Pools being removed",
                f"max by (cluster, pool) (nodeyard_pool_draining{_LEAF}) > 0",
                "{{cluster}} {{pool}}",
            ),
        ),
        ("cluster", "nodeyard_pool_desired"),
    ),
    Dashboard(
        "profiles",
        "Nodeyard / Profiles",
        (
            Panel("Nodes", "max by (service, profile) (nodeyard_profile_nodes)", "{{service}} {{profile}}"),
            Panel(
                "Share that is updated",
                "max by (service, profile) (nodeyard_profile_updated)"
                " / max by (service, profile) (nodeyard_profile_nodes)",
                "{{service}} {{profile}}",
                "percentunit",
            ),
            Panel(
                "Share that is available",
                "max by (service, profile) (nodeyard_profile_available)"
                " / max by (service, profile) (nodeyard_profile_nodes)",
                "{{service}} {{profile}}",
                "percentunit",
            ),
        ),
    ),
    Dashboard(
        "affinity",
        "Nodeyard / Affinity",
        (
            Panel(
                "Nodes of the class", "max by (affinity_class) (nodeyard_affinity_class_nodes)", "{{affinity_class}}"
            ),
            Panel(
                "Users of the class", "max by (affinity_class) (nodeyard_affinity_class_users)", "{{affinity_class}}"
            ),
            Panel(
                "Pods that could run outside",
                "max by (affinity_class) (nodeyard_affinity_class_violators)",
                "{{affinity_class}}",
            ),
            Panel(
                "Pod reviews",
                _rate("nodeyard_affinity_reviews_total", "affinity_class, decision"),
                "{{affinity_class}} {{decision}}",
                "ops",
            ),
            Panel(
                "Denied and warned pods",
                _rate("nodeyard_affinity_reviews_total", "decision, reason", '{decision=~"denied|warned|audited"}'),
                "{{decision}} {{reason}}",
                "ops",
            ),
        ),
    ),
    Dashboard(
        "leaves",
        "Nodeyard / Leaves",
        (
            Panel("Connected", f"max by (cluster) (nodeyard_cluster_connected{_LEAF})", "{{cluster}}"),
            Panel(
                "Time since contact", f"max by (cluster) (nodeyard_leaf_contact_age_seconds{_LEAF})", "{{cluster}}", "s"
            ),
            Panel("Oldest lease", f"max by (cluster) (nodeyard_leaf_lease_age_seconds{_LEAF})", "{{cluster}}", "s"),
            Panel(
                "Lease renewals",
                _rate("nodeyard_leaf_lease_renewals_total", "cluster, result", _LEAF),
                "{{cluster}} {{result}}",
                "ops",
            ),
            Panel("Nodes of the leaf", f"max by (cluster) (nodeyard_leaf_nodes{_LEAF})", "{{cluster}}"),
            Panel("Mirrored nodes", f"max by (cluster) (nodeyard_leaf_mirrors{_LEAF})", "{{cluster}}"),
            Panel("Lag, 99 %", _quantile("nodeyard_leaf_lag_seconds", "cluster", _LEAF), "{{cluster}}", "s"),
            Panel(
                "Node writes",
                _rate("nodeyard_leaf_node_writes_total", "cluster, reason", _LEAF),
                "{{cluster}} {{reason}}",
                "ops",
            ),
            Panel(
                "Pods not acknowledged", f"max by (cluster) (nodeyard_leaf_unacknowledged_pods{_LEAF})", "{{cluster}}"
            ),
        ),
        ("cluster", "nodeyard_leaf_nodes"),
    ),
    Dashboard(
        "webhooks",
        "Nodeyard / Webhooks",
        (
            Panel(
                "Reviews",
                _rate("nodeyard_webhook_reviews_total", "webhook, response", _WEBHOOK),
                "{{webhook}} {{response}}",
                "ops",
            ),
            Panel(
                "Review, median",
                _quantile("nodeyard_webhook_review_seconds", "webhook", _WEBHOOK, 0.5),
                "{{webhook}}",
                "s",
            ),
            Panel(
                "Review, 99 %", _quantile("nodeyard_webhook_review_seconds", "webhook", _WEBHOOK), "{{webhook}}", "s"
            ),
            Panel(
                "Failed reviews",
                _rate(
                    "nodeyard_webhook_reviews_total",
                    "webhook, response",
                    '{webhook=~"$webhook",response=~"error|not_synced|malformed"}',
                ),
                "{{webhook}} {{response}}",
                "ops",
            ),
            Panel(
                "Lookups",
                _rate("nodeyard_webhook_lookups_total", "webhook, result", _WEBHOOK),
                "{{webhook}} {{result}}",
                "ops",
            ),
            Panel(
                "Registrations",
                _rate("nodeyard_webhook_registrations_total", "capability, reason"),
                "{{capability}} {{reason}}",
                "ops",
            ),
            _stat("Certificate ends in", "min(nodeyard_webhook_certificate_expiry_seconds) - time()", "s"),
        ),
        ("webhook", "nodeyard_webhook_reviews_total"),
    ),
)


def render(dashboard: Dashboard) -> str:
    """Return the JSON that Grafana imports."""
    value = {
        "uid": f"nodeyard-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["nodeyard"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(_variables(dashboard))},
        "links": [{"type": "dashboards", "title": "Nodeyard", "tags": ["nodeyard"], "asDropdown": True}],
        "panels": [_panel(index, panel) for index, panel in enumerate(dashboard.panels)],
    }
    return json.dumps(value, indent=2) + "\n"


def _variables(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    if dashboard.variable is not None:
        label, metric = dashboard.variable
        query = f"label_values({metric}, {label})"
        yield {
            "name": label,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": "values"},
            "definition": query,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "current": {"text": "All", "value": "$__all"},
        }


def _panel(index: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": index + 1,
        "title": panel.title,
        "type": panel.type,
        "datasource": _SOURCE,
        "gridPos": {"x": index % 3 * WIDTH, "y": index // 3 * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "datasource": _SOURCE, "expr": panel.expression, "legendFormat": panel.legend}],
    }


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        (FOLDER / f"{dashboard.name}.json").write_text(render(dashboard))


if __name__ == "__main__":
    main()
