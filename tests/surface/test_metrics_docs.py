"""docs/metrics.md lists the operator's metrics: names, labels and meaning are public, and the code is their source.

To renew it: NODEYARD_RENEW=1 pytest tests/surface
"""

import os
from pathlib import Path

from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.process.clock import VirtualClock
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.metrics import request_observer
from nodeyard.runtime.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
HEAD = """# Metrics

`nodeyard run` serves these metrics at `--metrics-bind` in the Prometheus text format. This page is generated \
from the code (`NODEYARD_RENEW=1 pytest tests/surface`).

| metric | type | labels | meaning |
|---|---|---|---|
"""


async def exported():
    """All metrics of the operator."""
    metrics = Metrics()
    metrics.expose_process()
    request_observer(metrics)
    Manager(None, (), Settings(identity="x"), metrics=metrics, clock=VirtualClock())
    AdmissionMetrics(metrics)
    for capability in CAPABILITIES:
        if capability.metrics is not None:
            capability.metrics(metrics)
    return list(metrics.described())


async def page():
    rows = [
        f"| `{each.name}` | {each.type} | {', '.join(f'`{label}`' for label in each.labels)} | {each.help} |\n"
        for each in await exported()
    ]
    return HEAD + "".join(rows)


async def test_the_page_lists_exactly_the_metrics_there_are():
    if os.environ.get("NODEYARD_RENEW"):
        PAGE.write_text(await page())
    assert PAGE.read_text() == await page()
