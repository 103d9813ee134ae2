"""Puts capabilities on one cluster: shared watches and connections, one controller and one election each.

    async with manager.running(): ...        start, and on the way out: finish what is in flight, give the leases back

Order of a stop: workers take no more and finish; then leases are released, so that another replica begins at once; the
watches end last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from nodeyard.client.api import Client, Observer
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.process.logs import get_logger
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.cluster import Surroundings
from nodeyard.runtime.controller import Controller, Place
from nodeyard.runtime.elections import Elections, TaskElections
from nodeyard.runtime.health import Health
from nodeyard.runtime.metrics import LoopMetrics
from nodeyard.runtime.reaching import Connect, reach
from nodeyard.runtime.served import Served
from nodeyard.runtime.settings import Settings
from nodeyard.runtime.thinking import InThread, Thinker
from nodeyard.watch.metrics import expose
from nodeyard.watch.watches import Watches

HUNG_SECONDS: Final = 300.0
"""A plan of ten thousand nodes takes seconds."""

_log = get_logger("manager")


class Manager:
    def __init__(
        self,
        client: Client,
        capabilities: Sequence[Capability],
        settings: Settings,
        *,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        elections: Elections | None = None,
        thinker: Callable[[str], Thinker] = InThread,
        connect: Connect = reach,
        observe: Observer | None = None,
    ) -> None:
        """`thinker` makes the place where a capability's planner runs. `connect` reaches further clusters, and
        `observe` is told of what is asked there."""
        self.metrics = metrics or Metrics()
        clock, random = clock or SystemClock(), random or Random()
        self.watches = Watches(client, clock, random)
        self._served = Served(client, clock)
        self.watches.on_discovered = self._served.learn
        self._elections = elections or TaskElections(client)
        loop_metrics = LoopMetrics(self.metrics)
        around = Surroundings(clock, random, connect, observe, show=loop_metrics.show_cluster)
        place = Place(client, clock, random, self.watches, self._served, self._elections, loop_metrics, around)
        self.controllers = tuple(Controller(each, place, settings, thinker(each.name)) for each in capabilities)
        self._background: list[asyncio.Task[None]] = []
        expose(self.metrics, self.watches)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        background = self._background = [
            asyncio.create_task(self.watches.run(), name="watches"),
            asyncio.create_task(self._served.run(), name="served"),
        ]
        self._elections.start()
        for controller in self.controllers:
            controller.start()
        _log.info("running", capabilities=[each.capability.name for each in self.controllers])
        try:
            yield
        finally:
            _log.info("stopping", reason="finishing what is in flight")
            await asyncio.gather(*(controller.stop() for controller in self.controllers))
            await self._elections.stop()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)

    def health(self) -> Health:
        return Health(
            live={
                "leases": lambda: "" if self._elections.is_alive else "the lease loop has ended",
                "loops": self._ended,
                "plans": self._hung,
            },
            ready={"synced": self._unsynced, "watches": self._stalled},
        )

    def _ended(self) -> str:
        """A loop that ended on its own is a fault of ours: the process is of no use any more."""
        ended = [task.get_name() for task in self._background if task.done()]
        ended += [each.capability.name for each in self.controllers if not each.is_alive]
        return f"ended: {', '.join(ended)}" if ended else ""

    def _hung(self) -> str:
        """Whoever thinks for so long does not come to an end: nothing of the capability is planned any more."""
        busy = [(each.capability.name, each.thinks_for) for each in self.controllers]
        hung = [f"{name} for {seconds:.0f} s" for name, seconds in busy if seconds > HUNG_SECONDS]
        return f"thinking about one plan: {', '.join(hung)}" if hung else ""

    def _unsynced(self) -> str:
        missing = [report.source for report in self.watches.reports() if not report.is_synced]
        return "" if self.watches.is_ready else f"not told everything yet: {', '.join(missing) or 'starting'}"

    def _stalled(self) -> str:
        stalled = self.watches.stalled()
        return ", ".join(f"{each.source} silent for {each.silence:.0f} s {each.error}".strip() for each in stalled)
