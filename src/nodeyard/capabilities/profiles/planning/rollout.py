"""Decide if a service object may be reconfigured now: within the rollout budget and before the progress deadline.

An object that is already unavailable needs no part of the budget: a new configuration does not make it worse.
"""

from __future__ import annotations

from datetime import timedelta

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.base import ServiceMessage
from nodeyard.capabilities.profiles.messages.states import BudgetSpent, Stalled
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
from nodeyard.capabilities.profiles.snapshot import Budget
from nodeyard.kube.json import Object


def is_disruptive(live: Object | None, hash: str, *, ignores: bool) -> bool:
    """Check if this configuration would disrupt an object that is available now."""
    if live is None or annotation(live, names.HASH) == hash:
        return False
    return is_available(live, ignores=ignores) and is_ready(live)


def find_wait(node: str, resolution: Resolution, budget: Budget) -> ServiceMessage | None:
    """Return what a node waits for before its object may be disrupted; None if the budget has room."""
    service, profile = resolution.service, resolution.value
    if budget.stalled:
        return Stalled(service=service.name, profile=profile, object=budget.stalled)
    if budget.unavailable < budget.limit:
        return None
    return BudgetSpent(
        service=service.name,
        node=node,
        kind=service.profile_kind,
        profile=profile,
        limit=budget.limit,
        total=budget.total,
    )


def config_annotations(live: Object | None, resolution: Resolution, hash: str, draft: PlanBuilder) -> dict[str, str]:
    """Return the annotations with the desired hash, the generation, and the time of the last change."""
    generation = str(resolution.profile.generation if resolution.profile is not None else 0)
    since = format_time(draft.now)
    if live is not None and annotation(live, names.HASH) == hash:
        since = annotation(live, names.WRITTEN) or since
    return {names.HASH: hash, names.GENERATION: generation, names.WRITTEN: since}


def find_stall(draft: PlanBuilder, live: Object | None, resolution: Resolution, *, ignores: bool) -> Stalled | None:
    """Return a message if an object is past its progress deadline; requeue the node at the deadline."""
    if live is None or is_available(live, ignores=ignores):
        return None
    since = written_at(live)
    if since is None:
        return None
    deadline = since + timedelta(seconds=deadline_seconds(resolution.service, resolution.profile))
    if draft.now < deadline:
        draft.wake(deadline)
        return None
    return Stalled(service=resolution.service.name, profile=resolution.value, object=live["metadata"]["name"])
