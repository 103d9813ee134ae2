"""Whether to write at all: `--observe`, or the operator that a capability replaces being alive beside it.

Two operators on the same objects undo each other's work for ever, so the newcomer looks on until the other is gone, and
says so: in the log, in a metric, and on each root in an event and a condition. Where the two can be told apart object
by object, the plan leaves alone what is the other's and says so itself; then only the log tells of it here.
"""

from __future__ import annotations

from datetime import datetime

from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, Living, View
from nodeyard.runtime.metrics import CapabilityMetrics
from nodeyard.runtime.settings import Settings

BY_FLAG = "--observe"

_log = get_logger("observing")


class Observing:
    def __init__(self, capability: Capability, settings: Settings, metrics: CapabilityMetrics) -> None:
        self._capability = capability
        self._settings = settings
        self._metrics = metrics
        self._original = ""
        self.living: Living | None = None
        """The original, where there is one."""
        self.is_observing = settings.observe
        """As last found."""

    def reason(self, view: View, now: datetime) -> str:
        """Why nothing is written now; empty when things are. A living original is named."""
        original = self._living_original(view, now)
        reason = BY_FLAG if self._settings.observe else original
        self._metrics.observing(reason)
        self.is_observing = bool(reason)
        return reason

    def _living_original(self, view: View, now: datetime) -> str:
        if self._capability.original is None:
            return ""
        self.living = self._capability.original(view, now)
        name = "" if self.living is None else self.living.name
        if name != self._original:
            self._original = name
            self._tell(self.living)
        is_apart = self.living is not None and self.living.is_apart
        return "" if self._settings.take_over or is_apart else name

    def _tell(self, living: Living | None) -> None:
        if living is None:
            _log.info("the original is gone", capability=self._capability.name)
        elif living.is_apart:
            _log.warning("leaving to the original what is its own", capability=self._capability.name,
                         original=living.name, reason="it is alive beside us", hand_over=living.hand_over)  # fmt: skip
        elif self._settings.take_over:
            _log.warning("taking over", capability=self._capability.name, original=living.name, reason="--take-over")
        else:
            _log.warning("observing only", capability=self._capability.name, original=living.name,
                         reason="it is alive beside us", hand_over=living.hand_over)  # fmt: skip
