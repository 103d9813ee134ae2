"""The loop that the capability registers: a keeper for each leaf that is ours, as long as it is.

What it measures goes to the `leases` (a `LeaseMetrics`) of what the capability measures with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.briefs import Brief
from nodeyard.capabilities.clustertree.leases.keeper import Keeper
from nodeyard.capabilities.clustertree.leases.metrics import LeaseMetrics
from nodeyard.runtime.leader import first_of
from nodeyard.runtime.loops import LoopContext


async def renew(context: LoopContext) -> None:
    """Until it is told to stop."""
    keepers = Keepers(context, getattr(context.measure, "leases", None))
    try:
        while not context.stopped.is_set():
            context.changed.clear()
            keepers.follow(context.briefs)
            await first_of(context.stopped.wait(), context.changed.wait())
    finally:
        await keepers.close()


class Keepers:
    def __init__(self, context: LoopContext, metrics: LeaseMetrics | None = None) -> None:
        self._context = context
        self._metrics = metrics
        self._working: dict[str, tuple[Keeper, asyncio.Task[None]]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def follow(self, briefs: Mapping[str, Brief | None]) -> None:
        """Begin with leaves that are new, end with those that are gone, tell the others what has changed."""
        wanted = {key: brief for key, brief in briefs.items() if brief is not None}
        for key in self._working.keys() - wanted.keys():
            self._end(key)
        for key, brief in wanted.items():
            if key in self._working:
                self._working[key][0].give(brief)
            else:
                self._begin(key, brief)

    async def close(self) -> None:
        for key in tuple(self._working):
            self._end(key)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _begin(self, key: str, brief: Brief) -> None:
        keeper = Keeper(self._context, brief, self._metrics)
        if self._metrics is not None:
            self._metrics.follow(key, keeper.contact_age, keeper.lease_age)
        self._working[key] = keeper, asyncio.create_task(keeper.run(), name=f"leases of {key}")

    def _end(self, key: str) -> None:
        """Without waiting: closing connections to a leaf that does not answer may take a while."""
        _, task = self._working.pop(key)
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        if self._metrics is not None:
            self._metrics.forget(key)
        self._context.publish(names.finding(key), None)
