"""Report of a reconcile: status, events and metrics."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity.report.events import events
from nodeyard.capabilities.affinity.report.metrics import measure
from nodeyard.capabilities.affinity.report.status import status
from nodeyard.capabilities.affinity.snapshot import Snapshot
from nodeyard.plan.model import Plan
from nodeyard.runtime.capability import Report


def report(snapshot: Snapshot, plan: Plan, outcome: Outcome, now: datetime) -> Report:
    return Report(status(snapshot, plan, outcome, now), events(snapshot, plan, outcome), measure(snapshot))
