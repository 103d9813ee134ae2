"""Observe-only mode, and the conditions that the reconciler itself sets on root objects.

A capability is in observe-only mode under `--observe`, and while the operator that it replaces is still running. Two
operators on the same objects would undo each other's writes forever. The reason is shown in the log, in a metric, and
on each root in an event and a condition. If the objects of both operators can be told apart, the plan skips those of
the other operator and says so itself; then only the log mentions it here.

The conditions, beside those that a capability writes:

    Observing   the replaced operator is still running; this condition is all that is written
    Stale       a watch has been broken for a while; roots are read before each write
    Held        a plan waits for approval; the message has its id
    Blocked     admission denied a write that was planned for the root

Each is removed when it no longer holds, with the status write of the same pass or by its own. Kinds whose status has no
conditions get the event, the log line and the metric only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from nodeyard.kube.conditions import TRUE, to_wire
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.explain import HELD_TYPE
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, Key, PeerOperator, StatusWrite, View
from nodeyard.runtime.metrics import CapabilityMetrics
from nodeyard.runtime.settings import Settings

BY_FLAG: Final = "--observe"
OBSERVING: Final = "Observing"
REPLACED_OPERATOR_RUNNING: Final = "ReplacedOperatorRunning"
STALE: Final = "Stale"
WATCH_BROKEN: Final = "WatchBroken"
BLOCKED: Final = "Blocked"
HELD: Final = HELD_TYPE
_TYPES: Final = (OBSERVING, STALE, HELD, BLOCKED)

_log = get_logger("observe")


class ObserveOnly:
    """Decides whether a capability may write at all."""

    def __init__(self, capability: Capability, settings: Settings, metrics: CapabilityMetrics) -> None:
        self._capability = capability
        self._settings = settings
        self._metrics = metrics
        self._peer_name = ""
        self.peer: PeerOperator | None = None
        """The replaced operator, if it is still running."""
        self.is_observing = settings.observe
        """The last answer of `reason`, for other threads."""

    def reason(self, view: View, now: datetime) -> str:
        """Return why nothing may be written: the flag, or the name of the replaced operator. Empty if writes may go
        out."""
        peer = self._find_peer(view, now)
        reason = BY_FLAG if self._settings.observe else peer
        self._metrics.set_observing(reason)
        self.is_observing = bool(reason)
        return reason

    def _find_peer(self, view: View, now: datetime) -> str:
        if self._capability.replaces is None:
            return ""
        self.peer = self._capability.replaces(view, now)
        name = "" if self.peer is None else self.peer.name
        if name != self._peer_name:
            self._peer_name = name
            self._log_peer(self.peer)
        is_apart = self.peer is not None and self.peer.is_apart
        return "" if self._settings.take_over or is_apart else name

    def _log_peer(self, peer: PeerOperator | None) -> None:
        capability = self._capability.name
        if peer is None:
            _log.info("replaced operator stopped", capability=capability)
        elif peer.is_apart:
            _log.warning("objects of replaced operator skipped", capability=capability, replaces=peer.name,
                         reason="it is still running", hand_over=peer.hand_over)  # fmt: skip
        elif self._settings.take_over:
            _log.warning("take-over started", capability=capability, replaces=peer.name, reason="--take-over")
        else:
            _log.warning("observe-only mode started", capability=capability, replaces=peer.name,
                         reason="it is still running", hand_over=peer.hand_over)  # fmt: skip


class EngineCondition(NamedTuple):
    """A condition of the reconciler: True on a root while it holds, else removed."""

    type: str
    reason: str
    message: str


def held_condition(message: str) -> EngineCondition:
    return EngineCondition(HELD, EngineReason.NEEDS_APPROVAL.value, message)


class SharedHolds:
    """Objects whose edits are held in the plans of other keys: an edit of a role is held node by node.

    The work per key is constant: of a thousand keys that hold the same edit, the first key's message is shown.
    """

    def __init__(self) -> None:
        self._roots: dict[Key, frozenset[ObjectRef]] = {}
        self._messages: dict[ObjectRef, dict[Key, str]] = {}

    def hold(self, key: Key, held: Plan | None, message: str) -> list[ObjectRef]:
        """Record the held plan of a key, None for nothing. Returns the objects whose message changes."""
        roots = {each.group_root for each in held.actions if each.group_root} if held is not None else set()
        before = self._roots.pop(key, frozenset())
        if roots:
            self._roots[key] = frozenset(roots)
        return [ref for ref in before | roots if self._changes_message(ref, key, message if ref in roots else "")]

    def conditions_of(self, roots: Iterable[ObjectRef]) -> dict[ObjectRef, Sequence[EngineCondition]]:
        """Return the condition `Held` of each object on which something is held."""
        return {ref: (held_condition(message),) for ref in roots if (message := self._message(ref))}

    def _changes_message(self, ref: ObjectRef, key: Key, message: str) -> bool:
        before, messages = self._message(ref), self._messages.setdefault(ref, {})
        if message:
            messages[key] = message
        else:
            messages.pop(key, None)
        if not messages:
            del self._messages[ref]
        return self._message(ref) != before

    def _message(self, ref: ObjectRef) -> str:
        return next(iter(self._messages.get(ref, {}).values()), "")


def with_observing(root: Any, ref: ObjectRef, message: str, now: datetime) -> StatusWrite | None:
    """Return the root's status with the condition `Observing`; None if the kind has no conditions."""
    status = _status(root)
    if status is None:
        return None
    wanted = [EngineCondition(OBSERVING, REPLACED_OPERATOR_RUNNING, message)]
    return StatusWrite(object=ref, status={**status, "conditions": _merge(status["conditions"], root, wanted, now)})


def with_engine_conditions(
    writes: Sequence[StatusWrite],
    roots: Iterable[tuple[Any, ObjectRef]],
    conditions: Mapping[ObjectRef, Sequence[EngineCondition]],
    now: datetime,
) -> list[StatusWrite]:
    """Return the status writes of a pass with the reconciler's conditions, plus one for each other root that
    changes."""
    known = {ref: root for root, ref in roots}
    done = []
    for write in writes:
        root, wanted = known.pop(write.object, None), conditions.get(write.object, ())
        done.append(_replace(write, root, wanted, now))
    for ref, root in known.items():
        wanted = conditions.get(ref, ())
        if not wanted and not _has_engine_condition(root):
            continue
        if (status := _status(root)) is not None:
            done.append(_replace(StatusWrite(object=ref, status=status), root, wanted, now))
    return done


def _replace(write: StatusWrite, root: Any, wanted: Sequence[EngineCondition], now: datetime) -> StatusWrite:
    before: list[Object] = write.status.get("conditions") or []
    if not wanted and not any(each["type"] in _TYPES for each in before):
        return write
    if wanted and (root is None or _status(root) is None):
        return write
    return msgspec.structs.replace(write, status={**write.status, "conditions": _merge(before, root, wanted, now)})


def _merge(before: Sequence[Object], root: Any, wanted: Sequence[EngineCondition], now: datetime) -> list[Object]:
    """Return the conditions with the reconciler's own merged in; each keeps its lastTransitionTime."""
    status = None if root is None else _status(root)
    transitions = {each["type"]: each.get("lastTransitionTime") for each in (status or {}).get("conditions", ())}
    generation = 0 if root is None else _generation(root)
    return [each for each in before if each["type"] not in _TYPES] + [
        {
            "type": each.type,
            "status": TRUE,
            "reason": each.reason,
            "message": each.message,
            "lastTransitionTime": transitions.get(each.type) or format_rfc3339(now),
            **({"observedGeneration": generation} if generation else {}),
        }
        for each in wanted
    ]


def _has_engine_condition(root: Any) -> bool:
    if isinstance(root, Mapping):
        return any(each["type"] in _TYPES for each in (root.get("status") or {}).get("conditions") or ())
    conditions = getattr(getattr(root, "status", None), "conditions", None)
    return any(each.type in _TYPES for each in conditions or ())


def _status(root: Any) -> Object | None:
    """Return the status as JSON with its conditions; None if the kind has none."""
    if isinstance(root, Mapping):
        status: Object = root.get("status") or {}
        return {**status, "conditions": status.get("conditions") or []}
    conditions = getattr(getattr(root, "status", None), "conditions", None)
    return None if conditions is None else {**msgspec.to_builtins(root.status), "conditions": to_wire(conditions)}


def _generation(root: Any) -> int:
    if isinstance(root, Mapping):
        return int(root["metadata"].get("generation") or 0)
    return int(root.metadata.generation)
