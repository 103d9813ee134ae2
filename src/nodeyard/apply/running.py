"""One plan on its way: its schedule, its workers, and what holds it back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.apply.schedule import Schedule
from nodeyard.apply.verdicts import ended
from nodeyard.plan.model import Action, Planned, Write
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

log = get_logger("applier")

REPLACED = "a newer plan replaces this one"
NOT_ALLOWED = "writing is not allowed now"


class Running:
    def __init__(
        self,
        planned: Planned,
        carry_out: CarryOut,
        may_write: Callable[[], bool],
        clock: Clock,
        *,
        seen_at: float,
        dry_run: bool,
    ) -> None:
        self.planned = planned
        self.seen_at = seen_at
        self.is_dry = dry_run
        self.has_ended = asyncio.Event()
        self._carry_out = carry_out
        self._may_write = may_write
        self._clock = clock
        self._is_replaced = asyncio.Event()
        self._schedule = Schedule(planned.plan.actions)
        self._results: dict[str, ActionResult] = {}
        self._ready: asyncio.Queue[Action | None] = asyncio.Queue()

    def replace(self) -> None:
        self._is_replaced.set()

    def hold(self) -> str:
        """Why nothing more is sent; empty while things are."""
        if self._is_replaced.is_set():
            return REPLACED
        return "" if self.is_dry or self._may_write() else NOT_ALLOWED

    def write(self, action: Action) -> Write:
        """What to send, bound to the version that was looked at, or to what actions before this made of just that."""
        write = self._planned_write(action)
        if not write.resource_version:
            return write
        for earlier in (self._results[each] for each in action.after):
            seen = self._planned_write(earlier.action).resource_version
            if earlier.version and seen == write.resource_version and earlier.action.object == action.object:
                return msgspec.structs.replace(write, resource_version=earlier.version)
        return write

    def _planned_write(self, action: Action) -> Write:
        return self.planned.writes.get(action.id) or Write()

    async def wait(self, seconds: float) -> None:
        """Sleep, but not longer than the plan stands."""
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        replaced = asyncio.ensure_future(self._is_replaced.wait())
        try:
            await asyncio.wait((sleeping, replaced), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            replaced.cancel()

    async def run(self, workers: int) -> Outcome:
        actions = self.planned.plan.actions
        for action, why in self._schedule.never():
            self._results[action.id] = ended(action, Result.SKIPPED, why)
        for action in self._schedule.first():
            self._ready.put_nowait(action)
        if len(self._results) < len(actions):
            await self._employ(min(workers, self._schedule.width))
        return Outcome(results=tuple(self._results[action.id] for action in actions))

    async def _employ(self, workers: int) -> None:
        if workers == 1:
            # One action after another needs no task of its own.
            await self._work()
            return
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while (action := await self._ready.get()) is not None:
            self._record(await self._carried_out(action))
        # Passed on, so that the next worker goes home too.
        self._ready.put_nowait(None)

    async def _carried_out(self, action: Action) -> ActionResult:
        try:
            return await self._carry_out(self, action)
        except Exception as error:
            log.exception("carrying out an action failed", action=action.id, object=str(action.object))
            return ended(action, Result.FAILED, f"{type(error).__name__}: {error}")

    def _record(self, result: ActionResult) -> None:
        self._results[result.action.id] = result
        if result.result is Result.DONE:
            for each in self._schedule.succeeded(result.action):
                if each.id not in self._results:
                    self._ready.put_nowait(each)
        else:
            self._skip_behind(result)
        if len(self._results) == len(self.planned.plan.actions):
            self._ready.put_nowait(None)

    def _skip_behind(self, result: ActionResult) -> None:
        first = result.action
        held = result.result is Result.HELD
        why = result.message if held else f"comes after {first.verb.value} {first.object}: {result.result.value}"
        for action in self._schedule.behind(first):
            skipped = ended(action, Result.HELD if held else Result.SKIPPED, why)
            self._results.setdefault(action.id, skipped)


CarryOut: TypeAlias = Callable[[Running, Action], Awaitable[ActionResult]]
