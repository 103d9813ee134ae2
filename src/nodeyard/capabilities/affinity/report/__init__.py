"""Report of a reconcile: status, events and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity.report.applications import status_application
from nodeyard.capabilities.affinity.report.events import events
from nodeyard.capabilities.affinity.report.metrics import measure
from nodeyard.capabilities.affinity.report.status import status_class, status_definition
from nodeyard.capabilities.affinity.report.tenants import status_tenants
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    Snapshot,
    TenantsSnapshot,
)
from nodeyard.plan.model import Plan
from nodeyard.runtime.capability import Report, StatusWrite


def report(snapshot: Snapshot, plan: Plan, outcome: Outcome, now: datetime) -> Report:
    return Report(_status(snapshot, plan, outcome, now), events(snapshot, plan, outcome), measure(snapshot))


def _status(snapshot: Snapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    """Return the status writes by kind of key. Pods get none."""
    match snapshot:
        case TenantsSnapshot():
            return status_tenants(snapshot, plan, outcome, now)
        case ApplicationSnapshot():
            return status_application(snapshot, plan, outcome, now)
        case DefinitionSnapshot():
            return status_definition(snapshot, plan, outcome, now)
        case ClassSnapshot():
            return status_class(snapshot, plan, outcome, now)
    return ()
