"""Requests are counted by verb, resource, code and reason."""

from nodeyard.client.resources import LEASES, NODES
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.metrics import request_observer


async def test_requests_and_their_durations_are_counted():
    metrics = Metrics()
    observe = request_observer(metrics)
    observe("patch", NODES, 200, 0.01, "")
    observe("patch", NODES, 409, 0.01, "Conflict")
    observe("patch", NODES, 409, 0.01, "Conflict")
    observe("get", LEASES, 0, 5.0, "")
    text = (await metrics.render()).decode()
    assert 'nodeyard_client_requests_total{code="409",reason="Conflict",resource="nodes",verb="patch"} 2.0' in text
    unanswered = '{code="0",reason="",resource="leases.coordination.k8s.io",verb="get"} 1.0'
    assert f"nodeyard_client_requests_total{unanswered}" in text
    assert 'nodeyard_client_request_seconds_count{resource="nodes",verb="patch"} 3.0' in text
