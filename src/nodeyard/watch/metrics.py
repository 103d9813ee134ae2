"""Prometheus metrics of the informers, computed when scraped so that watch events cost nothing extra."""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.process.metrics import Metrics
from nodeyard.watch.informers import InformerFactory
from nodeyard.watch.reflector import Report
from nodeyard.watch.shared_informer import SharedInformer

_LABELS = ("resource", "view")
_GAUGES: tuple[tuple[str, str, Callable[[Report], float]], ...] = (
    ("objects", "Objects in the cache.", lambda report: report.objects),
    ("malformed_objects", "Objects that could not be decoded or indexed.", lambda report: report.malformed),
    ("unconfirmed_writes", "Own writes that the watch has not delivered yet.", lambda report: report.unconfirmed),
    ("silence_seconds", "Seconds since the last watch event or bookmark.", lambda report: report.silence),
    ("synced", "1 after the first complete list.", lambda report: report.is_synced),
    ("stalled", "1 while the cache may be stale.", lambda report: report.is_stalled),
    ("restarts", "Watch failures and relists.", lambda report: report.restarts),
)


def expose(metrics: Metrics, watches: InformerFactory) -> None:
    """Register the gauges of all informers. Call after all watches are registered.

    Kinds declared later are added and removed automatically. The gauges of a stopped watch are 0.
    """
    gauges = [(metrics.gauge(f"nodeyard_informer_{name}", help, _LABELS), value) for name, help, value in _GAUGES]

    def show(informer: SharedInformer) -> None:
        for gauge, value in gauges:
            gauge.labels(*_labels(informer)).set_function(_reader(informer, value))

    def hide(informer: SharedInformer) -> None:
        for gauge, _ in gauges:
            gauge.remove(*_labels(informer))

    for informer in watches.informers:
        show(informer)
    watches.on_watching, watches.on_dropped = show, hide


def _labels(informer: SharedInformer) -> tuple[str, str]:
    return str(informer.key), informer.resource.view.__name__


def _reader(informer: SharedInformer, value: Callable[[Report], float]) -> Callable[[], float]:
    def read() -> float:
        report = informer.report()
        return 0.0 if report is None else float(value(report))

    return read
