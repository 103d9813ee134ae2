"""The manager: runs capabilities on one cluster with shared informers and connections, one controller and election
each.

    async with manager.running(): ...        starts everything; on exit finishes work in flight and releases the leases

Shutdown order: workers take no more keys and finish; then the leases are released, so that another replica starts at
once; the informers stop last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Final

from nodeyard.client.api import Client, Observer
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.process.logs import get_logger
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.health import Health
from nodeyard.runtime.leader.elections import Elections, TaskElections
from nodeyard.runtime.metrics import LoopMetrics
from nodeyard.runtime.reconcile.controller import Controller, ControllerEnvironment
from nodeyard.runtime.reconcile.passes import PassObservers
from nodeyard.runtime.reconcile.plan_executor import PlanExecutor, ThreadPlanExecutor
from nodeyard.runtime.remote.cluster import ClusterEnvironment
from nodeyard.runtime.remote.connect import Connect, connect_by_kubeconfig, secret_reader
from nodeyard.runtime.settings import Settings
from nodeyard.watch.informers import InformerFactory, expose_metrics

HUNG_SECONDS: Final = 300.0
"""A plan that takes longer counts as hung; a plan of ten thousand nodes takes seconds."""

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
        plan_executor: Callable[[str], PlanExecutor] = ThreadPlanExecutor,
        connect: Connect = connect_by_kubeconfig,
        observe: Observer | None = None,
    ) -> None:
        """`plan_executor` creates the executor of a capability. `connect` opens remote clusters; `observe` is called
        for each request to them."""
        self.metrics = metrics or Metrics()
        clock, random = clock or SystemClock(), random or Random()
        self.informers = InformerFactory(client, clock, random)
        self.informers.mapper.follow()
        self._elections = elections or TaskElections(client)
        loop_metrics = LoopMetrics(self.metrics)
        remote = ClusterEnvironment(
            clock, random, connect, observe, show=loop_metrics.show_cluster, read=secret_reader(client)
        )
        self.pass_observers = PassObservers()
        env = ControllerEnvironment(
            client, clock, random, self.informers, self._elections, loop_metrics, remote, self.pass_observers
        )
        self.controllers = tuple(Controller(each, env, settings, plan_executor(each.name)) for each in capabilities)
        self._background: list[asyncio.Task[None]] = []
        expose_metrics(self.metrics, self.informers)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        background = self._background = [
            asyncio.create_task(self.informers.run(), name="informers"),
        ]
        self._elections.start()
        for controller in self.controllers:
            controller.start()
        _log.info("controllers started", capabilities=[each.capability.name for each in self.controllers])
        try:
            yield
        finally:
            _log.info("controllers stopping", reason="finishing work in flight")
            await asyncio.gather(*(controller.stop() for controller in self.controllers))
            await self._elections.stop()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)

    def health(self) -> Health:
        """Return the health checks. A capability with broken watches is reported and stays in service: its webhooks
        still answer from caches that have synced, and share a Service with those of the others."""
        return Health(
            live={
                "leases": lambda: "" if self._elections.is_alive else "the lease thread has stopped",
                "loops": self._stopped_tasks,
                "plans": self._hung_planners,
            },
            ready={"synced": self._check_synced, "watches": self._check_any_watch},
            warnings={each.capability.name: partial(self._check_watches, each) for each in self.controllers},
        )

    def _stopped_tasks(self) -> str:
        """Return the tasks that ended on their own, which is a bug: the process must be restarted."""
        ended = [task.get_name() for task in self._background if task.done()]
        ended += [each.capability.name for each in self.controllers if not each.is_alive]
        return f"stopped: {', '.join(ended)}" if ended else ""

    def _hung_planners(self) -> str:
        """Return the capabilities whose planner hangs: nothing of them is planned until a restart."""
        busy = [(each.capability.name, each.plans_for) for each in self.controllers]
        hung = [f"{name} for {seconds:.0f} s" for name, seconds in busy if seconds > HUNG_SECONDS]
        return f"one plan is running: {', '.join(hung)}" if hung else ""

    def _check_synced(self) -> str:
        missing = [report.resource for report in self.informers.reports() if not report.is_synced]
        return "" if self.informers.is_ready else f"not synced yet: {', '.join(missing) or 'starting'}"

    def _check_any_watch(self) -> str:
        """Return the broken watches if no watch works, or no capability has ever synced; another replica may have."""
        found = [self._check_watches(each) for each in self.controllers]
        is_useful = self.informers.has_current and any(each.is_synced for each in self.controllers)
        return "; ".join(dict.fromkeys(found)) if all(found) and not is_useful else ""

    def _check_watches(self, controller: Controller) -> str:
        broken = self.informers.broken_watches(controller.view)
        return ", ".join(f"{each.resource} silent for {each.silence:.0f} s {each.error}".strip() for each in broken)
