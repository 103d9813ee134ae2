"""How old the leases are, as the status shows it: a moment, which whoever looks makes an age of.

Leases are renewed every ten seconds, and nobody wants a status written as often. While all is well the moment is
brought up to date about once a minute, as a kubelet does with its node; when leases are late or have stopped it is
exact, and stands still with them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.clustertree.liveness import Finding, State
from nodeyard.capabilities.clustertree.planning.ownership import ours
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.kube.moments import read

SHOWN_EVERY: Final = timedelta(minutes=1)


def renewal_shown(snapshot: TreeSnapshot, now: datetime) -> datetime | None:
    """When all leases had last been renewed; after a restart, and before anything new is known, what was said."""
    shown = read(snapshot.cluster.status.leases_renewed_time)
    finding = snapshot.leaf.finding
    if finding is None or finding.renewed_at is None:
        return shown
    is_recent = shown is not None and shown <= now < shown + SHOWN_EVERY
    return shown if is_recent and not _has_stopped(finding) else finding.renewed_at


def shown_again_at(snapshot: TreeSnapshot, now: datetime) -> datetime | None:
    """When the moment that is shown has to be brought up to date; None where it does not move."""
    finding = snapshot.leaf.finding
    shown = renewal_shown(snapshot, now)
    if finding is None or finding.renewed_at is None or shown is None or _has_stopped(finding):
        return None
    if not ours(snapshot.mirrors, snapshot.cluster.name):
        return None
    due = shown + SHOWN_EVERY
    return due if due > now else now + SHOWN_EVERY


def _has_stopped(finding: Finding) -> bool:
    return finding.state is State.UNREACHABLE or bool(finding.failed)
