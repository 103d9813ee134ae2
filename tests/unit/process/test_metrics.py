"""Metrics live in a registry of their own."""

import pytest

from nodeyard.process.metrics import Described, Metrics
from nodeyard.process.version import VERSION


async def test_counted_values_are_rendered():
    metrics = Metrics()
    metrics.counter("nodeyard_plans_total", "Plans made.", ["capability"]).labels("spares").inc()
    metrics.gauge("nodeyard_nodes", "Nodes.").set(3)
    text = (await metrics.render()).decode()
    assert 'nodeyard_plans_total{capability="spares"} 1.0' in text
    assert "nodeyard_nodes 3.0" in text


async def test_a_family_without_series_prints_nothing():
    metrics = Metrics()
    gauge = metrics.gauge("nyallocator_annotations", "Annotations.", ["key"], is_foreign=True)
    assert await metrics.render() == b""
    gauge.labels("team").set(1)
    assert b"# TYPE nyallocator_annotations gauge" in await metrics.render()
    gauge.remove("team")
    assert await metrics.render() == b""


def test_metrics_describe_themselves_by_name():
    metrics = Metrics()
    metrics.histogram("nodeyard_plan_seconds", "How long.", ["capability"])
    metrics.counter("nodeyard_a_total", "A.")
    assert list(metrics.described()) == [
        Described("nodeyard_a_total", "counter", "A.", ()),
        Described("nodeyard_plan_seconds", "histogram", "How long.", ("capability",)),
    ]


async def test_a_process_shows_its_version_and_what_it_uses():
    metrics = Metrics()
    metrics.expose_process()
    text = (await metrics.render()).decode()
    assert f'version="{VERSION}"' in text
    assert "process_resident_memory_bytes " in text
    assert "process_cpu_seconds_total" in {each.name for each in metrics.described()}


def test_a_name_without_our_prefix_is_refused():
    with pytest.raises(ValueError, match="must begin with nodeyard_"):
        Metrics().gauge("nodes", "Nodes.")


def test_two_registries_do_not_know_each_other():
    for _ in range(2):
        Metrics().gauge("nodeyard_nodes", "Nodes.")
