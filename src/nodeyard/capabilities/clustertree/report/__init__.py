"""Report of a reconcile: status, events and metrics of a Cluster."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.clustertree.report.events import events
from nodeyard.capabilities.clustertree.report.metrics import measure
from nodeyard.capabilities.clustertree.report.status import status
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.plan.model import Plan
from nodeyard.runtime.capability import Report


def report(snapshot: TreeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Report:
    return Report(
        status(snapshot, plan, outcome, now), events(snapshot, plan, outcome), measure(snapshot, plan, outcome)
    )
