"""What a capability's own loop is given: a loop is for what is not a plan, such as renewing leases of others.

It runs on the lease thread with connections of its own, until `stopped` is set, and asks `gate` before each write.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from nodeyard.client.api import Client
from nodeyard.process.clock import Clock
from nodeyard.runtime.capability import View
from nodeyard.runtime.elections import Gate
from nodeyard.runtime.reaching import Connect, reach


@dataclass(frozen=True)
class LoopContext:
    client: Client
    gate: Gate
    clock: Clock
    stopped: asyncio.Event
    view: View
    """Belongs to the main loop: only single reads of immutable objects are safe from here."""
    connect: Connect = reach
    """Connections of its own to further clusters."""
