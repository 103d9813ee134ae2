"""Metrics of client requests: count, result and duration."""

from __future__ import annotations

from typing import Any

from nodeyard.client.api import Observer
from nodeyard.client.resources import Resource
from nodeyard.process.metrics import Metrics


def request_observer(metrics: Metrics) -> Observer:
    """Return an observer for `Client(observe=...)`. It binds each series of verb, resource, code and reason once."""
    requests = metrics.counter(
        "nodeyard_client_requests_total",
        "Requests sent to an API server; code 0 is no response. A 403 has reason Forbidden (missing permission), "
        "NamespaceTerminating or AdmissionDenied.",
        ("verb", "resource", "code", "reason"),
    )  # fmt: skip
    seconds = metrics.histogram(
        "nodeyard_client_request_seconds",
        "Seconds from sending a request to the end of its response.",
        ("verb", "resource"),
    )
    counters: dict[tuple[str, str, int, str], Any] = {}
    histograms: dict[tuple[str, str], Any] = {}

    def observe(verb: str, resource: Resource[Any], code: int, duration: float, reason: str) -> None:
        name = str(resource)
        counter = counters.get((verb, name, code, reason))
        if counter is None:
            counter = counters[verb, name, code, reason] = requests.labels(verb, name, str(code), reason)
        histogram = histograms.get((verb, name))
        if histogram is None:
            histogram = histograms[verb, name] = seconds.labels(verb, name)
        counter.inc()
        histogram.observe(duration)

    return observe
