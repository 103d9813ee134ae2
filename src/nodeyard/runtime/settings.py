"""Settings of the engine: the options of `nodeyard run` as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.plan.brake import Limit
from nodeyard.runtime.leader.election import Timing
from nodeyard.runtime.reconcile.workqueue import WINDOW_SECONDS

KEY_LEASE = Timing(duration=14, margin=4.0, interval=4.0, deadline=2.5, retry=1.0)


@dataclass(frozen=True)
class Settings:
    identity: str
    """Holder identity in Leases: unique among replicas."""
    leader_elect: bool = True
    observe: bool = False
    """Observe-only mode: plan, explain and measure, but write nothing except Leases."""
    take_over: bool = False
    """Write although the replaced operator is still running."""
    limit: Limit = field(default_factory=Limit)
    workers: int = 64
    """Concurrent reconciles per capability: twice the requests in flight, so that some keys are planned while others
    wait for the server."""
    workers_with_clusters: int = 32
    """Concurrent reconciles of a capability with remote clusters, where a key may wait for a slow one."""
    window: float = WINDOW_SECONDS
    resync: float = 600.0
    denied_retry: float = 300.0
    """Seconds until a denied write is retried without an event."""
    grace: float = 20.0
    """Seconds that a shutdown waits for work in flight."""
    lease: Timing = field(default_factory=Timing)
    key_lease: Timing = KEY_LEASE
    """Timing of key Leases if keys are sharded: fewer renewals, since there are many. A killed replica is still
    replaced within 20 s."""
