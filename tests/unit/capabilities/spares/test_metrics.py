"""nyallocator's metrics keep their names and labels."""

from __future__ import annotations

from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.report import report
from nodeyard.capabilities.spares.report.metrics import SparesMetrics
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.process.metrics import Metrics

from ....builders.spares import NOW, all_done, snapshot, spare, template


def passed(metrics: SparesMetrics, seen: SparesSnapshot) -> None:
    """Reconcile once with every write successful."""
    planned = plan(seen, NOW)
    metrics.record(report(seen, planned.plan, all_done(planned), NOW).metrics)


def value(registry: Metrics, name: str) -> float | None:
    return registry.registry.get_sample_value(f"nyallocator_{name}", {"nodetemplate": "compute"})


def test_a_pass_is_counted_as_it_ended() -> None:
    registry = Metrics()

    passed(SparesMetrics(registry), snapshot([spare("a"), spare("b"), spare("c")], [template("compute", 2)]))

    assert value(registry, "current_nodes") == 2
    assert value(registry, "desired_nodes") == 2
    assert value(registry, "spare_nodes") == 1
    assert value(registry, "sufficient_nodes") == 1
    assert value(registry, "reconcile_success") == 1


def test_a_shortage_shows() -> None:
    registry = Metrics()

    passed(SparesMetrics(registry), snapshot([spare("a")], [template("compute", 2)]))

    assert value(registry, "sufficient_nodes") == 0
    assert value(registry, "spare_nodes") == 0


def test_the_series_of_a_template_go_with_it() -> None:
    registry = Metrics()
    metrics = SparesMetrics(registry)
    passed(metrics, snapshot([], [template("compute", 0, metadata={"annotations": {"team": "x"}})]))
    labels = {"nodetemplate": "compute", "key": "team", "value": "x"}
    assert registry.registry.get_sample_value("nyallocator_annotations", labels) == 1

    passed(metrics, snapshot([], []))

    assert value(registry, "current_nodes") is None
    assert registry.registry.get_sample_value("nyallocator_annotations", labels) is None
