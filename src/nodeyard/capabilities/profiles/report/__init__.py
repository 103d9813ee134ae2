"""Report of a reconcile: status and events of a node; status and metrics of a profile; status of a role or service."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.profiles.report.events import events
from nodeyard.capabilities.profiles.report.metrics import measure
from nodeyard.capabilities.profiles.report.profiles import report_status
from nodeyard.capabilities.profiles.report.status import status
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, StatusSnapshot
from nodeyard.plan.model import Plan
from nodeyard.runtime.capability import Report


def report(snapshot: NodeSnapshot | StatusSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Report:
    if isinstance(snapshot, NodeSnapshot):
        return Report(status(snapshot, plan, outcome, now), events(snapshot, plan, outcome))
    return Report(report_status(snapshot, now), metrics=measure(snapshot))
