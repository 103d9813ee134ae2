"""What a person chooses about the loop: the options of `nodeyard run`, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.plan.brake import Limit
from nodeyard.runtime.leader import Timing
from nodeyard.runtime.queue import WINDOW_SECONDS

SHARE = Timing(duration=14, margin=4.0, interval=4.0, deadline=2.5, retry=1.0)


@dataclass(frozen=True)
class Settings:
    identity: str
    """Who we are in the leader's Lease: unique among replicas."""
    leader_elect: bool = True
    observe: bool = False
    """Plan, explain and measure; write nothing but the Lease."""
    take_over: bool = False
    """Write although the operator we replace is alive beside us."""
    limit: Limit = field(default_factory=Limit)
    workers: int = 64
    """Keys worked on at once, per capability: twice what may be in flight, so that some are planned while others wait
    for the server."""
    workers_elsewhere: int = 32
    """The same, for a capability that writes to further clusters: a key may have to wait for a slow one."""
    window: float = WINDOW_SECONDS
    resync: float = 600.0
    denied_retry: float = 300.0
    """After admission refused a write and nothing has happened since."""
    grace: float = 20.0
    """How long a stop waits for what is in flight."""
    lease: Timing = field(default_factory=Timing)
    share: Timing = SHARE
    """Of each key's Lease, where keys are shared out: fewer renewals, since there are many, and a killed replica is
    followed within 20 s all the same."""
