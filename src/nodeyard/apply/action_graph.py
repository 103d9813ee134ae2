"""Execution of one plan: the graph of its actions, its workers, and the reasons to hold it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result, action_result
from nodeyard.client.flow_control import IN_FLIGHT
from nodeyard.plan.model import Action, Planned, Write
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

log = get_logger("applier")

WORKERS: Final = IN_FLIGHT
"""Actions of one plan at a time: more would only wait for their turn in the transport, which bounds all plans."""
REPLACED = "a newer plan replaces this one"
NOT_ALLOWED = "writes are not allowed now: the lease was lost, or the object is paused or was edited"


class ActionGraph:
    """The dependency graph of a plan's actions (`after`). It does no I/O and never waits.

    Raises ValueError if two actions share an id, since `after` could not tell them apart.
    """

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions = {action.id: action for action in actions}
        if len(self._actions) < len(actions):
            raise ValueError("two actions of a plan have the same id")
        self._missing = {action.id: set(action.after) for action in self._actions.values()}
        self._dependents: dict[str, list[str]] = {}
        for action in self._actions.values():
            for dependency in set(action.after):
                self._dependents.setdefault(dependency, []).append(action.id)

    def roots(self) -> list[Action]:
        """Return the actions without dependencies."""
        return [action for action in self._actions.values() if not self._missing[action.id]]

    @property
    def width(self) -> int:
        """Upper bound of the actions that can be in flight at once."""
        return len(self.roots()) + sum(len(each) - 1 for each in self._dependents.values())

    def unreachable(self) -> Iterator[tuple[Action, str]]:
        """Yield the actions that can never start, with the cause: a missing dependency or a cycle."""
        reached = [action.id for action in self.roots()]
        missing = {each: len(after) for each, after in self._missing.items()}
        for each in reached:
            for dependent in self._dependents.get(each, ()):
                missing[dependent] -= 1
                if not missing[dependent]:
                    reached.append(dependent)
        for each in self._actions.keys() - set(reached):
            unknown = sorted(self._missing[each] - self._actions.keys())
            why = f"depends on {unknown[0]}, which is not in the plan" if unknown else "depends on itself"
            yield self._actions[each], why

    def complete(self, action: Action) -> list[Action]:
        """Mark the action as done and return the actions that may start now."""
        ready = []
        for each in self._dependents.get(action.id, ()):
            self._missing[each].discard(action.id)
            if not self._missing[each]:
                ready.append(self._actions[each])
        return ready

    def dependents_of(self, action: Action) -> list[Action]:
        """Return all direct and indirect dependents of the action."""
        found: dict[str, Action] = {}
        pending = [action.id]
        while pending:
            for each in self._dependents.get(pending.pop(), ()):
                if each not in found and each in self._actions:
                    found[each] = self._actions[each]
                    pending.append(each)
        return list(found.values())


class Execution:
    """One run of a plan: starts actions when their dependencies are done, and collects the results."""

    def __init__(
        self,
        planned: Planned,
        execute: Execute,
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
        self._execute = execute
        self._may_write = may_write
        self._clock = clock
        self._is_replaced = asyncio.Event()
        self._graph = ActionGraph(planned.plan.actions)
        self._results: dict[str, ActionResult] = {}
        self._ready: asyncio.Queue[Action | None] = asyncio.Queue()

    def replace(self) -> None:
        """Send nothing more: a newer plan of the key exists, or the key is cancelled."""
        self._is_replaced.set()

    def hold(self) -> str:
        """Return why nothing more may be sent; empty if writes may go out."""
        if self._is_replaced.is_set():
            return REPLACED
        return "" if self.is_dry or self._may_write() else NOT_ALLOWED

    def write(self, action: Action) -> Write:
        """Return the write of an action with its resourceVersion precondition.

        If an earlier action of this plan wrote the same object from the same version, the precondition becomes the
        resourceVersion that the earlier write returned.
        """
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
        """Sleep, but wake as soon as the plan is replaced."""
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        replaced = asyncio.ensure_future(self._is_replaced.wait())
        try:
            await asyncio.wait((sleeping, replaced), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            replaced.cancel()

    async def run(self) -> Outcome:
        actions = self.planned.plan.actions
        for action, why in self._graph.unreachable():
            self._results[action.id] = action_result(action, Result.SKIPPED, why)
        for action in self._graph.roots():
            self._ready.put_nowait(action)
        if len(self._results) < len(actions):
            await self._run_workers(min(WORKERS, self._graph.width))
        return Outcome(results=tuple(self._results[action.id] for action in actions))

    async def _run_workers(self, workers: int) -> None:
        if workers == 1:
            # A single chain of actions runs without the cost of a task.
            await self._work()
            return
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while (action := await self._ready.get()) is not None:
            try:
                result = await self._execute(self, action)
            except Exception as error:
                log.exception("action failed", action=action.id, object=str(action.object))
                result = action_result(action, Result.FAILED, f"{type(error).__name__}: {error}")
            self._record(result)
        # The stop mark is passed on, so that the next worker stops too.
        self._ready.put_nowait(None)

    def _record(self, result: ActionResult) -> None:
        self._results[result.action.id] = result
        if result.result is Result.DONE:
            for each in self._graph.complete(result.action):
                if each.id not in self._results:
                    self._ready.put_nowait(each)
        else:
            self._skip_dependents(result)
        if len(self._results) == len(self.planned.plan.actions):
            self._ready.put_nowait(None)

    def _skip_dependents(self, result: ActionResult) -> None:
        first = result.action
        is_held = result.result is Result.HELD
        why = result.message if is_held else f"depends on {first.verb.value} {first.object}: {result.result.value}"
        for action in self._graph.dependents_of(first):
            skipped = action_result(action, Result.HELD if is_held else Result.SKIPPED, why)
            self._results.setdefault(action.id, skipped)


Execute: TypeAlias = Callable[[Execution, Action], Awaitable[ActionResult]]
