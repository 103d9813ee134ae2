"""Decide if a service object may be reconfigured now: within the rollout budget and before the progress deadline.

An object that is already unavailable needs no slot: a new configuration does not make it worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.availability import (
    annotation,
    deadline_seconds,
    format_time,
    is_available,
    is_ready,
    written_at,
)
from nodeyard.capabilities.profiles.planning.builder import PlanBuilder
from nodeyard.capabilities.profiles.planning.resolution import Resolution
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import Budget
from nodeyard.kube.json import Object


@dataclass(frozen=True)
class RolloutSlot:
    """Answer to a request to reconfigure a service object."""

    reason: Reason | None = None
    """Reason to wait; None if the object may be reconfigured."""
    facts: Object | None = None


def is_disruptive(live: Object | None, hash: str, *, ignores: bool) -> bool:
    """Check if this configuration would disrupt an object that is available now."""
    if live is None or annotation(live, names.HASH) == hash:
        return False
    return is_available(live, ignores=ignores) and is_ready(live)


def request_slot(live: Object | None, hash: str, budget: Budget, *, ignores: bool) -> RolloutSlot:
    if not is_disruptive(live, hash, ignores=ignores):
        return RolloutSlot()
    if budget.stalled:
        return RolloutSlot(Reason.STALLED, {"stalled": budget.stalled})
    if budget.unavailable >= budget.limit:
        return RolloutSlot(Reason.BUDGET_SPENT, _spent(budget))
    return RolloutSlot()


def _spent(budget: Budget) -> Object:
    return {"limit": budget.limit, "unavailable": budget.unavailable, "total": budget.total}


def config_annotations(live: Object | None, resolution: Resolution, hash: str, draft: PlanBuilder) -> dict[str, str]:
    """Return the annotations with the desired hash, the generation, and the time of the last change."""
    generation = str(resolution.profile.generation if resolution.profile is not None else 0)
    since = format_time(draft.now)
    if live is not None and annotation(live, names.HASH) == hash:
        since = annotation(live, names.WRITTEN) or since
    return {names.HASH: hash, names.GENERATION: generation, names.WRITTEN: since}


def check_progress(draft: PlanBuilder, live: Object | None, resolution: Resolution, *, ignores: bool) -> RolloutSlot:
    """Check if an object is available or past its progress deadline; requeue at the deadline."""
    if live is None or is_available(live, ignores=ignores):
        return RolloutSlot()
    since = written_at(live)
    if since is None:
        return RolloutSlot(Reason.ROLLING, {})
    deadline = since + timedelta(seconds=deadline_seconds(resolution.service, resolution.profile))
    if draft.now < deadline:
        draft.wake(deadline)
        return RolloutSlot(Reason.ROLLING, {})
    return RolloutSlot(Reason.STALLED, {"stalled": live["metadata"]["name"]})
