"""The condition that says on a root why nothing is done: the operator we replace is alive beside us.

It is all that is written while that is so. When we write again it goes, with the status of the same pass or, where that
has nothing to say, for itself. Kinds whose status has no conditions are told by event, log and metric alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from nodeyard.kube.conditions import TRUE, to_wire
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import rfc3339
from nodeyard.runtime.capability import StatusWrite

OBSERVING: Final = "Observing"
ORIGINAL_ALIVE: Final = "OriginalAlive"


def observed(root: Any, ref: ObjectRef, message: str, now: datetime) -> StatusWrite | None:
    """The root's status with the condition; None where it has no place for it."""
    status = _status(root)
    if status is None:
        return None
    conditions: list[Object] = status["conditions"]
    before = next((each for each in conditions if each["type"] == OBSERVING), {})
    condition: Object = {
        "type": OBSERVING,
        "status": TRUE,
        "reason": ORIGINAL_ALIVE,
        "message": message,
        "lastTransitionTime": before.get("lastTransitionTime") or rfc3339(now),
    }
    if generation := _generation(root):
        condition["observedGeneration"] = generation
    return StatusWrite(object=ref, status={**status, "conditions": [*_others(conditions), condition]})


def resumed(writes: Sequence[StatusWrite], roots: Iterable[tuple[Any, ObjectRef]]) -> list[StatusWrite]:
    """The writes of a pass without the condition, and one more for each other root that still has it."""
    marked = {ref: root for root, ref in roots if _is_marked(root)}
    done = [_without(write) for write in writes]
    for write in writes:
        marked.pop(write.object, None)
    left = [StatusWrite(object=ref, status=_status(root) or {}) for ref, root in marked.items()]
    return done + [_without(write) for write in left]


def _is_marked(root: Any) -> bool:
    if isinstance(root, Mapping):
        return any(each["type"] == OBSERVING for each in (root.get("status") or {}).get("conditions") or ())
    conditions = getattr(getattr(root, "status", None), "conditions", None)
    return any(each.type == OBSERVING for each in conditions or ())


def _without(write: StatusWrite) -> StatusWrite:
    conditions = write.status.get("conditions")
    if not conditions or len(left := _others(conditions)) == len(conditions):
        return write
    return msgspec.structs.replace(write, status={**write.status, "conditions": left})


def _others(conditions: Iterable[Object]) -> list[Object]:
    return [each for each in conditions if each["type"] != OBSERVING]


def _status(root: Any) -> Object | None:
    """As on the wire, with its conditions; None where the kind has none."""
    if isinstance(root, Mapping):
        status: Object = root.get("status") or {}
        return {**status, "conditions": status.get("conditions") or []}
    conditions = getattr(getattr(root, "status", None), "conditions", None)
    return None if conditions is None else {**msgspec.to_builtins(root.status), "conditions": to_wire(conditions)}


def _generation(root: Any) -> int:
    if isinstance(root, Mapping):
        return int(root["metadata"].get("generation") or 0)
    return int(root.metadata.generation)
