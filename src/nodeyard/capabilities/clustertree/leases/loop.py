"""The background loop that clustertree registers: one keeper for each leaf that this replica owns.

It measures with the `leases` attribute (a `LeaseMetrics`) of the capability's metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.inputs import LeaseInput
from nodeyard.capabilities.clustertree.leases.keeper import Keeper
from nodeyard.capabilities.clustertree.leases.metrics import LeaseMetrics
from nodeyard.process.aio import first_of
from nodeyard.runtime.background import LoopContext


async def renew(context: LoopContext) -> None:
    """Run until the context is stopped."""
    keepers = Keepers(context, getattr(context.metrics_recorder, "leases", None))
    try:
        while not context.stopped.is_set():
            context.changed.clear()
            keepers.sync(context.inputs)
            await first_of(context.stopped.wait(), context.changed.wait())
    finally:
        await keepers.close()


class Keepers:
    def __init__(self, context: LoopContext, metrics: LeaseMetrics | None = None) -> None:
        self._context = context
        self._metrics = metrics
        self._working: dict[str, tuple[Keeper, asyncio.Task[None]]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def sync(self, inputs: Mapping[str, LeaseInput | None]) -> None:
        """Start keepers of new leaves, stop those of leaves that are gone, and update the others."""
        wanted = {key: lease_input for key, lease_input in inputs.items() if lease_input is not None}
        for key in self._working.keys() - wanted.keys():
            self._end(key)
        for key, lease_input in wanted.items():
            if key in self._working:
                self._working[key][0].update(lease_input)
            else:
                self._begin(key, lease_input)

    async def close(self) -> None:
        for key in tuple(self._working):
            self._end(key)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _begin(self, key: str, lease_input: LeaseInput) -> None:
        keeper = Keeper(self._context, lease_input, self._metrics)
        if self._metrics is not None:
            self._metrics.follow(key, keeper.contact_age, keeper.lease_age)
        self._working[key] = keeper, asyncio.create_task(keeper.run(), name=f"leases of {key}")

    def _end(self, key: str) -> None:
        """Do not wait: closing connections to a leaf that does not respond may take a while."""
        _, task = self._working.pop(key)
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        if self._metrics is not None:
            self._metrics.forget(key)
        self._context.publish(names.leaf_health(key), None)
