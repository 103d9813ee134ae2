"""Observers of the reconcilers. They see of each pass its plan, the outcome of its writes, and how it ended.

    manager.pass_observers.append(recorder.record)

An observer is called on the event loop and must return at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from nodeyard.apply.outcome import Outcome
from nodeyard.plan.brake import Braked
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Key
from nodeyard.runtime.reconcile.result import Ending

_log = get_logger("reconciler")


@dataclass(frozen=True)
class PassEvent:
    """A step of one pass over a key: planned (`braked`), then applied (`braked` and `outcome`), then ended (`ending`).

    A pass that ends early is not planned, and one that observes only is not applied."""

    capability: str
    key: Key
    braked: Braked | None = None
    outcome: Outcome | None = None
    ending: Ending | None = None


PassObserver: TypeAlias = Callable[[PassEvent], None]


class PassObservers:
    """The observers of all controllers of a process; empty unless a dashboard is served."""

    def __init__(self) -> None:
        self._observers: list[PassObserver] = []

    def append(self, observer: PassObserver) -> None:
        self._observers.append(observer)

    def __call__(self, event: PassEvent) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except Exception:
                # A failing observer must not change the pass.
                _log.exception("pass observer failed", capability=event.capability, key=event.key)
