"""Conditions of an object, read and set according to the API conventions.

The transition time of a condition moves only with its status. The observed generation names the spec that the condition
describes. Setting a condition that is there already returns the identical tuple, so callers can compare by identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.kube.timestamps import format_rfc3339

TRUE = "True"
FALSE = "False"
UNKNOWN = "Unknown"


def find(conditions: Iterable[Condition], type: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: Iterable[Condition], type: str, generation: int = 0) -> bool:
    """Return True if the condition is True and, if a generation is given, was observed at it or later."""
    condition = find(conditions, type)
    return condition is not None and condition.status == TRUE and condition.observed_generation >= generation


def with_condition(conditions: tuple[Condition, ...], wanted: Condition, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions with this one set, in its place or at the end.

    The transition time of `wanted` is used only if the status changes, and `now` if it has none. A condition observed
    at an older generation than the present one is ignored.
    """
    present = find(conditions, wanted.type)
    if present is None:
        return (*conditions, _since(wanted, wanted.last_transition_time or now))
    if wanted.observed_generation < present.observed_generation:
        return conditions
    is_same_status = present.status == wanted.status
    since = present.last_transition_time if is_same_status else wanted.last_transition_time
    replacement = _since(wanted, since or now)
    if replacement == present:
        return conditions
    return tuple(replacement if each is present else each for each in conditions)


def to_wire(conditions: Iterable[Condition]) -> list[Object]:
    """Return the wire form for `status.conditions`, with all fields that metav1.Condition requires."""
    return [_wire(condition) for condition in conditions]


def _wire(condition: Condition) -> Object:
    since = condition.last_transition_time
    shown: Object = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": None if since is None else format_rfc3339(since),
    }
    if condition.observed_generation:
        shown["observedGeneration"] = condition.observed_generation
    return shown


def _since(condition: Condition, moment: datetime) -> Condition:
    """Truncate to whole seconds, as the server does, so that a value read back is equal."""
    return msgspec.structs.replace(condition, last_transition_time=moment.replace(microsecond=0))
