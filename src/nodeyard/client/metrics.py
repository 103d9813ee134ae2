"""How many requests a client sends, how they end and how long they take."""

from __future__ import annotations

from typing import Any

from nodeyard.client.api import Observer
from nodeyard.client.resources import Resource
from nodeyard.process.metrics import Metrics


def request_observer(metrics: Metrics) -> Observer:
    """For `Client(observe=...)`. Series per verb, resource and code; those are few and are bound once."""
    requests = metrics.counter(
        "nodeyard_client_requests_total", "Requests sent to an API server; code 0 is no answer.",
        ("verb", "resource", "code"),
    )  # fmt: skip
    seconds = metrics.histogram(
        "nodeyard_client_request_seconds", "Time from sending a request to its whole answer.", ("verb", "resource")
    )
    counters: dict[tuple[str, str, int], Any] = {}
    histograms: dict[tuple[str, str], Any] = {}

    def observe(verb: str, resource: Resource[Any], code: int, duration: float) -> None:
        name = str(resource)
        counter = counters.get((verb, name, code))
        if counter is None:
            counter = counters[verb, name, code] = requests.labels(verb, name, str(code))
        histogram = histograms.get((verb, name))
        if histogram is None:
            histogram = histograms[verb, name] = seconds.labels(verb, name)
        counter.inc()
        histogram.observe(duration)

    return observe
