"""Report of a reconcile: status, events and metrics of every template."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.spares.report.events import events
from nodeyard.capabilities.spares.report.metrics import measure
from nodeyard.capabilities.spares.report.status import collect_accounts, status
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.plan.model import Plan
from nodeyard.runtime.capability import Report


def report(snapshot: SparesSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Report:
    accounts = collect_accounts(snapshot, plan, outcome)
    return Report(status(accounts, now), events(snapshot, plan, outcome), measure(snapshot, accounts))
