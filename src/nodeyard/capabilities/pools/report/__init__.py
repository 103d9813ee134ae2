"""Report of a reconcile: status, events and metrics of a LatticeCluster; status of its classes and services."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools.report.classes import status_classes
from nodeyard.capabilities.pools.report.events import events
from nodeyard.capabilities.pools.report.metrics import measure
from nodeyard.capabilities.pools.report.services import status_services
from nodeyard.capabilities.pools.report.status import Account, status
from nodeyard.capabilities.pools.snapshot import ClassesSnapshot, PoolsSnapshot, ServicesSnapshot
from nodeyard.plan.model import Plan
from nodeyard.runtime.capability import Report


def report(
    snapshot: PoolsSnapshot | ServicesSnapshot | ClassesSnapshot, plan: Plan, outcome: Outcome, now: datetime
) -> Report:
    if isinstance(snapshot, ServicesSnapshot):
        return Report(status_services(snapshot, now))
    if isinstance(snapshot, ClassesSnapshot):
        return Report(status_classes(snapshot, now))
    account = Account(snapshot, plan, outcome)
    return Report(status(account, now), events(snapshot, plan, outcome), measure(account))
