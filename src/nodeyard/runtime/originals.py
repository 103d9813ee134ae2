"""Whether to write at all: `--observe`, or the operator that a capability replaces being alive beside it.

Two operators on the same objects undo each other's work for ever, so the newcomer looks on until the other is gone, and
says so: in the log, in a metric, and once in an event on each root.
"""

from __future__ import annotations

from datetime import datetime

from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, View
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
        self.hand_over = ""
        """What to do about the original, where there is one."""

    def reason(self, view: View, now: datetime) -> str:
        """Why nothing is written now; empty when things are. A living original is named."""
        original = self._living_original(view, now)
        reason = BY_FLAG if self._settings.observe else original
        self._metrics.observing(reason)
        return reason

    def _living_original(self, view: View, now: datetime) -> str:
        if self._capability.original is None:
            return ""
        name, self.hand_over = self._capability.original(view, now) or ("", "")
        if name != self._original:
            self._original = name
            self._tell(name)
        return "" if self._settings.take_over else name

    def _tell(self, name: str) -> None:
        if not name:
            _log.info("the original is gone", capability=self._capability.name)
        elif self._settings.take_over:
            _log.warning("taking over", capability=self._capability.name, original=name, reason="--take-over")
        else:
            _log.warning("observing only", capability=self._capability.name, original=name,
                         reason="it is alive beside us", hand_over=self.hand_over)  # fmt: skip
