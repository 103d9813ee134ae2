"""Writes, plans and passes from a scrape of the operator's metrics."""

from __future__ import annotations

from bench.operator import Counters

TEXT = """\
# TYPE nodeyard_client_requests_total counter
nodeyard_client_requests_total{verb="patch",resource="nodes",code="200"} 40.0
nodeyard_client_requests_total{verb="patch",resource="nodes",code="409"} 2.0
nodeyard_client_requests_total{verb="create",resource="events.events.k8s.io",code="201"} 3.0
nodeyard_client_requests_total{verb="patch",resource="leases.coordination.k8s.io",code="200"} 99.0
nodeyard_client_requests_total{verb="list",resource="nodes",code="200"} 7.0
# TYPE nodeyard_reconciles_total counter
nodeyard_reconciles_total{capability="spares",result="done"} 4.0
nodeyard_reconciles_total{capability="spares",result="failed"} 1.0
# TYPE nodeyard_plan_seconds histogram
nodeyard_plan_seconds_bucket{capability="spares",le="+Inf"} 5.0
nodeyard_plan_seconds_count{capability="spares"} 5.0
nodeyard_plan_seconds_sum{capability="spares"} 0.5
"""


def test_writes_exclude_reads_and_lease_renewals():
    assert Counters(TEXT).writes == 45


def test_passes_and_plans_include_failed_ones():
    assert Counters(TEXT).passes == 5
    assert Counters(TEXT).plans == 5


def test_total_sums_the_series_with_the_labels():
    assert Counters(TEXT).total("nodeyard_client_requests_total", resource="nodes", verb="patch") == 42


def test_a_missing_series_counts_as_zero():
    assert Counters(TEXT).total("nodeyard_actions_total") == 0
