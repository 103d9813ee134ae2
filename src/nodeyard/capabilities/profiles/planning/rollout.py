"""Whether a node's service may be reconfigured now: within the budget, not past a deadline, and not pinned.

An object that does not run what it was last told is disturbed already: telling it something better costs nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.availability import (
    annotation,
    deadline_seconds,
    is_available,
    is_ready,
    written,
    written_at,
)
from nodeyard.capabilities.profiles.planning.draft import Draft
from nodeyard.capabilities.profiles.planning.resolution import Resolution
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import Budget
from nodeyard.kube.json import Object


@dataclass(frozen=True)
class Turn:
    """What comes of a wish to reconfigure a service."""

    reason: Reason | None = None
    """Why not now; None: go ahead."""
    facts: Object | None = None


def is_disturbing(live: Object | None, hash: str) -> bool:
    """Whether giving the object this configuration takes something away that works."""
    return live is not None and annotation(live, names.HASH) != hash and is_ready(live) and is_available(live)


def take_turn(live: Object | None, hash: str, budget: Budget) -> Turn:
    if not is_disturbing(live, hash):
        return Turn()
    if budget.is_stalled:
        return Turn(Reason.STALLED, {"stalled": budget.stalled})
    if not budget.is_granted:
        return Turn(Reason.BUDGET_SPENT, {"unavailable": budget.unavailable, "total": budget.total})
    return Turn()


def told(live: Object | None, resolution: Resolution, hash: str, draft: Draft) -> dict[str, str]:
    """The annotations that tell the object's operator what it should have, and since when."""
    generation = str(resolution.profile.generation if resolution.profile is not None else 0)
    since = written(draft.now)
    if live is not None and annotation(live, names.HASH) == hash:
        since = annotation(live, names.WRITTEN) or since
    return {names.HASH: hash, names.GENERATION: generation, names.WRITTEN: since}


def watch_progress(draft: Draft, live: Object | None, resolution: Resolution) -> Turn:
    """Of an object that has been told: whether it runs that, and if not whether its time is up."""
    if live is None or is_available(live):
        return Turn()
    since = written_at(live)
    if since is None:
        return Turn(Reason.ROLLING, {})
    deadline = since + timedelta(seconds=deadline_seconds(resolution.service, resolution.profile))
    if draft.now < deadline:
        draft.wake(deadline)
        return Turn(Reason.ROLLING, {})
    return Turn(Reason.STALLED, {"stalled": live["metadata"]["name"]})
