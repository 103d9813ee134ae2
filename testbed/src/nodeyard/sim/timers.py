"""Timers: which stage acts on which object, and when.

A cancelled timer stays in the heap until it is due and is then skipped, so starting and cancelling cost the same
however many there are.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from enum import Enum

from nodeyard.sim.index import Entity, Key
from nodeyard.sim.stage_set import Stage


class State(Enum):
    WAITING = "waiting"
    ACTING = "acting"
    DONE = "done"
    """The stage has acted and will not act again until the object has ceased to match."""


@dataclass(slots=True, eq=False)
class Timer:
    entity: Entity
    stage: Stage
    due: float
    state: State = State.WAITING
    attempts: int = 0
    is_cancelled: bool = False
    has_changed: bool = False
    """The object has changed since the stage began to act."""


@dataclass(slots=True)
class Timers:
    _heap: list[tuple[float, int, Timer]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _current: dict[Key, dict[str, Timer]] = field(default_factory=dict)
    _one_time: int = 0

    @property
    def one_time(self) -> int:
        """Return the number of timers that wait or act and do not repeat: at 0 nothing more happens by itself."""
        return self._one_time

    def get(self, entity: Entity, stage: Stage) -> Timer | None:
        return self._current.get(entity.key, {}).get(stage.name)

    def start(self, entity: Entity, stage: Stage, due: float) -> Timer:
        self.cancel(entity, stage)
        timer = Timer(entity, stage, due)
        self._current.setdefault(entity.key, {})[stage.name] = timer
        self._one_time += not stage.repeat
        self._push(timer)
        return timer

    def restart(self, timer: Timer, due: float) -> None:
        """Wait again, for the next repetition or another attempt."""
        if timer.is_cancelled:
            return
        timer.due = due
        timer.state = State.WAITING
        self._push(timer)

    def note_change(self, timer: Timer, due: float) -> None:
        """The object has changed: act again at `due`, or earlier if the timer already was to."""
        timer.attempts = 0
        if timer.state is State.ACTING:
            timer.has_changed = True
            return
        if timer.state is State.DONE:
            self._one_time += not timer.stage.repeat
        elif timer.due <= due:
            return
        self.restart(timer, due)

    def finish(self, timer: Timer) -> None:
        if not timer.is_cancelled and timer.state is not State.DONE:
            timer.state = State.DONE
            self._one_time -= not timer.stage.repeat

    def cancel(self, entity: Entity, stage: Stage) -> None:
        timers = self._current.get(entity.key)
        timer = timers.pop(stage.name, None) if timers else None
        if timer is not None:
            self._drop(timer)

    def cancel_all(self, key: Key) -> None:
        """Cancel the timers of an object that is gone."""
        for timer in self._current.pop(key, {}).values():
            self._drop(timer)

    def next_due(self) -> float | None:
        while self._heap and self._is_stale(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> Timer | None:
        """Return the earliest timer that is due, now acting."""
        due = self.next_due()
        if due is None or due > now:
            return None
        timer = heapq.heappop(self._heap)[2]
        timer.state = State.ACTING
        timer.has_changed = False
        return timer

    def _push(self, timer: Timer) -> None:
        heapq.heappush(self._heap, (timer.due, next(self._order), timer))

    def _drop(self, timer: Timer) -> None:
        timer.is_cancelled = True
        if timer.state is not State.DONE:
            self._one_time -= not timer.stage.repeat

    @staticmethod
    def _is_stale(due: float, _: int, timer: Timer) -> bool:
        return timer.is_cancelled or timer.state is not State.WAITING or timer.due != due
