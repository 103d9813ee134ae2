"""What is due when: appointments of stages with objects, by time.

An appointment that is called off stays in the heap until its time and is then passed over, so that making one and
calling one off cost the same however many there are.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from enum import Enum

from nodeyard.sim.index import Entity, Key
from nodeyard.sim.stage_book import Stage


class State(Enum):
    WAITING = "waiting"
    ACTING = "acting"
    DONE = "done"
    """It has acted, and will not again before the object has ceased to match."""


@dataclass(slots=True, eq=False)
class Appointment:
    entity: Entity
    stage: Stage
    due: float
    state: State = State.WAITING
    attempts: int = 0
    is_off: bool = False
    is_overtaken: bool = False
    """The object has changed since it began to act."""


@dataclass(slots=True)
class Agenda:
    _heap: list[tuple[float, int, Appointment]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _current: dict[Key, dict[str, Appointment]] = field(default_factory=dict)
    _one_time: int = 0
    """Appointments that wait or act and are not repeated: none means that nothing more will happen by itself."""

    def get(self, entity: Entity, stage: Stage) -> Appointment | None:
        return self._current.get(entity.key, {}).get(stage.name)

    def make(self, entity: Entity, stage: Stage, due: float) -> Appointment:
        self.call_off(entity, stage)
        appointment = Appointment(entity, stage, due)
        self._current.setdefault(entity.key, {})[stage.name] = appointment
        self._one_time += not stage.repeat
        self._push(appointment)
        return appointment

    def postpone(self, appointment: Appointment, due: float) -> None:
        """Let it wait again: the next beat of a repeated stage, or another attempt."""
        if appointment.is_off:
            return
        appointment.due = due
        appointment.state = State.WAITING
        self._push(appointment)

    def renew(self, appointment: Appointment, due: float) -> None:
        """The object has changed: act again, at once if it has acted or waits for another attempt."""
        appointment.attempts = 0
        if appointment.state is State.ACTING:
            appointment.is_overtaken = True
            return
        if appointment.state is State.DONE:
            self._one_time += not appointment.stage.repeat
        elif appointment.due <= due:
            return
        self.postpone(appointment, due)

    def finish(self, appointment: Appointment) -> None:
        if not appointment.is_off and appointment.state is not State.DONE:
            appointment.state = State.DONE
            self._one_time -= not appointment.stage.repeat

    def call_off(self, entity: Entity, stage: Stage) -> None:
        appointments = self._current.get(entity.key)
        appointment = appointments.pop(stage.name, None) if appointments else None
        if appointment is not None:
            self._drop(appointment)

    def forget(self, key: Key) -> None:
        """The object is gone."""
        for appointment in self._current.pop(key, {}).values():
            self._drop(appointment)

    def next_due(self) -> float | None:
        while self._heap and self._is_stale(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> Appointment | None:
        """The earliest that is due, now acting."""
        due = self.next_due()
        if due is None or due > now:
            return None
        appointment = heapq.heappop(self._heap)[2]
        appointment.state = State.ACTING
        appointment.is_overtaken = False
        return appointment

    @property
    def one_time(self) -> int:
        return self._one_time

    def _push(self, appointment: Appointment) -> None:
        heapq.heappush(self._heap, (appointment.due, next(self._order), appointment))

    def _drop(self, appointment: Appointment) -> None:
        appointment.is_off = True
        if appointment.state is not State.DONE:
            self._one_time -= not appointment.stage.repeat

    @staticmethod
    def _is_stale(due: float, _: int, appointment: Appointment) -> bool:
        return appointment.is_off or appointment.state is not State.WAITING or appointment.due != due
