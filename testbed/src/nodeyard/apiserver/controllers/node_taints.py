"""The taints of a node by its conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nodeyard.apiserver.controllers.node_facts import Condition, Taint
from nodeyard.kube.names import TAINT_NOT_READY, TAINT_UNREACHABLE, TAINT_UNSCHEDULABLE

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"

_BY_CONDITION: Final = {
    ("Ready", "False"): TAINT_NOT_READY,
    ("Ready", "Unknown"): TAINT_UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OURS: Final = frozenset((*_BY_CONDITION.values(), TAINT_UNSCHEDULABLE))
_EVICTING: Final = (TAINT_NOT_READY, TAINT_UNREACHABLE)


def no_schedule_keys(conditions: Iterable[Condition], *, is_unschedulable: bool) -> list[str]:
    """The NoSchedule taints of a node."""
    keys = [
        _BY_CONDITION[condition.type, condition.status]
        for condition in conditions
        if (condition.type, condition.status) in _BY_CONDITION
    ]
    return [*keys, TAINT_UNSCHEDULABLE] if is_unschedulable else keys


def evicting_key(ready: str) -> str | None:
    """The NoExecute taint for the status of Ready."""
    return {"False": TAINT_NOT_READY, "Unknown": TAINT_UNREACHABLE}.get(ready)


def has_evicting(taints: Iterable[Taint], key: str | None = None) -> bool:
    """True if a node has this NoExecute taint, or any of them."""
    return any(t.effect == NO_EXECUTE and t.key in _EVICTING and key in (None, t.key) for t in taints)


def with_no_schedule(taints: Sequence[Taint], keys: Sequence[str], now: str) -> list[Taint]:
    kept = [t for t in taints if t.effect != NO_SCHEDULE or t.key not in _OURS or t.key in keys]
    present = {t.key for t in kept if t.effect == NO_SCHEDULE}
    return kept + [Taint(key, effect=NO_SCHEDULE, time_added=now) for key in keys if key not in present]


def with_no_execute(taints: Sequence[Taint], key: str | None, now: str) -> list[Taint]:
    """Return the taints with exactly this NoExecute taint, or with none."""
    kept = [t for t in taints if t.effect != NO_EXECUTE or t.key not in _EVICTING or t.key == key]
    if key is None or has_evicting(kept, key):
        return kept
    return [*kept, Taint(key, effect=NO_EXECUTE, time_added=now)]
