"""Conditions of objects: lastTransitionTime changes only with the status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339

Conditions = Sequence[Object]


def find(conditions: Conditions | None, kind: str) -> Object | None:
    return next((condition for condition in conditions or () if condition.get("type") == kind), None)


def with_condition(conditions: Conditions | None, wanted: Object, now: datetime) -> list[Object]:
    """Return the conditions with this one set or appended."""
    current = find(conditions, wanted["type"])
    transition = format_rfc3339(now)
    if current is not None and current.get("status") == wanted["status"] and current.get("lastTransitionTime"):
        transition = current["lastTransitionTime"]
    changed = {**wanted, "lastTransitionTime": transition}
    if current is None:
        return [*(conditions or ()), changed]
    return [changed if condition is current else condition for condition in conditions or ()]


def with_pod_condition(conditions: Conditions | None, wanted: Object, now: datetime) -> list[Object] | None:
    """The same for a pod, whose conditions also have lastProbeTime; None if nothing changes."""
    wanted = {"lastProbeTime": None, **wanted}
    current = find(conditions, wanted["type"])
    updated = with_condition(conditions, wanted, now)
    if current is not None and find(updated, wanted["type"]) == {"lastProbeTime": None, **current}:
        return None
    return updated


def is_true(conditions: Conditions | None, kind: str) -> bool:
    condition = find(conditions, kind)
    return condition is not None and condition.get("status") == "True"
