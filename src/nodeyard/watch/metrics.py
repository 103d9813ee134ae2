"""How the watches are doing, for Prometheus: read when it is scraped, so that no event pays for it."""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.process.metrics import Metrics
from nodeyard.watch.feeds import Feed
from nodeyard.watch.informer import Report
from nodeyard.watch.watches import Watches

_LABELS = ("resource", "view")
_GAUGES: tuple[tuple[str, str, Callable[[Report], float]], ...] = (
    ("objects", "Objects in the cache.", lambda report: report.objects),
    ("malformed_objects", "Objects set aside because they did not decode.", lambda report: report.malformed),
    ("unconfirmed_writes", "Own writes that the watch has not told back yet.", lambda report: report.unconfirmed),
    ("silence_seconds", "Time since a watch last brought anything.", lambda report: report.silence),
    ("synced", "1 when the watch has told everything at least once.", lambda report: report.is_synced),
    ("stalled", "1 when the cache may be out of date.", lambda report: report.is_stalled),
    ("restarts", "How often the watch broke or had to begin anew.", lambda report: report.restarts),
)


def expose(metrics: Metrics, watches: Watches) -> None:
    """Call once everything is registered; kinds that are declared later come and go by themselves. A watch that does
    not run shows zeros."""
    gauges = [(metrics.gauge(f"nodeyard_informer_{name}", help, _LABELS), value) for name, help, value in _GAUGES]

    def show(feed: Feed) -> None:
        for gauge, value in gauges:
            gauge.labels(*_labels(feed)).set_function(_reader(feed, value))

    def hide(feed: Feed) -> None:
        for gauge, _ in gauges:
            gauge.remove(*_labels(feed))

    for feed in watches.feeds:
        show(feed)
    watches.on_watching, watches.on_dropped = show, hide


def _labels(feed: Feed) -> tuple[str, str]:
    return str(feed.source), feed.resource.view.__name__


def _reader(feed: Feed, value: Callable[[Report], float]) -> Callable[[], float]:
    def read() -> float:
        report = feed.report()
        return 0.0 if report is None else float(value(report))

    return read
