"""Metrics of a leaf, which are removed with it."""

from __future__ import annotations

import asyncio

from tests.builders.tree_state import TreeState, cluster, leaf, leaf_node, settled_state, used

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.clustertree.report.metrics import TreeMetrics, measure
from nodeyard.process.metrics import Metrics

N1 = leaf_node("n1")


def measured(metrics, recorder, tree, waited=None):
    planned = tree.plan().plan
    results = tuple(ActionResult(action=each, result=Result.DONE) for each in planned.actions)
    recorder.record(measure(tree.snapshot(), planned, Outcome(results=results, waited=waited)))
    return asyncio.run(metrics.render()).decode()


def test_nodes_writes_and_latency_are_measured_by_leaf():
    metrics = Metrics()
    recorder = TreeMetrics(metrics)
    tree = settled_state(nodes=[N1])

    text = measured(metrics, recorder, tree.with_(leaf=leaf(N1, used={"n1": used(1, cpu="1")})), waited=0.15)

    assert 'nodeyard_leaf_mirrors{cluster="east"} 1.0' in text
    assert 'nodeyard_leaf_nodes{cluster="east"} 1.0' in text
    assert 'nodeyard_leaf_node_writes_total{cluster="east",reason="ResourcesChanged"} 1.0' in text
    assert 'nodeyard_leaf_lag_seconds_bucket{cluster="east",le="0.2"} 1.0' in text
    assert 'nodeyard_leaf_lag_seconds_bucket{cluster="east",le="0.1"} 0.0' in text


def test_a_created_node_has_no_latency():
    metrics = Metrics()

    text = measured(metrics, TreeMetrics(metrics), TreeState(cluster("east"), leaf(N1)), waited=3.0)

    assert "nodeyard_leaf_lag_seconds_count{" not in text
    assert 'reason="NodeCreated"} 1.0' in text


def test_series_of_a_deleted_cluster_are_removed():
    metrics = Metrics()
    recorder = TreeMetrics(metrics)
    measured(metrics, recorder, TreeState(cluster("east"), leaf(N1)))

    recorder.forget("east")
    recorder.forget("never-seen")

    assert 'cluster="east"' not in asyncio.run(metrics.render()).decode()
