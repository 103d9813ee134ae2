"""The status of a PodDisruptionBudget, computed from its pods. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from nodeyard.apiserver.controllers.conditions import find, with_condition
from nodeyard.apiserver.controllers.pod_facts import PodFacts
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import parse_rfc3339

ALLOWED: Final = "DisruptionAllowed"
SYNC_FAILED: Final = "SyncFailed"
DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""Time that an allowed eviction may take to delete the pod before it is dropped from the count."""


class ScaleError(Exception):
    """The expected number of pods cannot be computed."""


class Counts(NamedTuple):
    expected: int
    desired: int
    """The number of pods that must be healthy."""


class Disrupted(NamedTuple):
    """Allowed evictions whose pods are not being deleted yet, and when to check again."""

    pods: dict[str, str]
    recheck_at: datetime | None


def count(spec: Object, pods: Mapping[str, PodFacts], scales: Mapping[str, tuple[str, int] | None]) -> Counts:
    """Compute the counts. `scales` has the replicas of each pod's controller by uid."""
    if spec.get("maxUnavailable") is not None:
        expected = _expected(pods, scales)
        return Counts(expected, max(expected - scaled(spec["maxUnavailable"], expected), 0))
    wanted = spec.get("minAvailable")
    if isinstance(wanted, str):
        expected = _expected(pods, scales)
        return Counts(expected, scaled(wanted, expected))
    return Counts(len(pods), wanted or 0)


def needs_scales(spec: Object) -> bool:
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def _expected(pods: Mapping[str, PodFacts], scales: Mapping[str, tuple[str, int] | None]) -> int:
    """The replicas of all controllers of the pods. Pods without a controller do not count."""
    found: dict[str, int] = {}
    for name, pod in pods.items():
        if pod.controller is None:
            continue
        scale = scales.get(pod.controller.uid)
        if scale is None:
            raise ScaleError(f'found no controllers for pod "{name}"')
        found[scale[0]] = scale[1]
    return sum(found.values())


def scaled(value: int | str, total: int) -> int:
    """Return an absolute number, or a percentage of the total rounded up."""
    if isinstance(value, int):
        return value
    try:
        return math.ceil(total * int(value.removesuffix("%")) / 100)
    except ValueError:
        raise ScaleError(f'invalid value for IntOrString: invalid type: strings "{value}"') from None


def disrupted(granted: Mapping[str, str], pods: Mapping[str, PodFacts], now: datetime) -> Disrupted:
    kept: dict[str, str] = {}
    recheck: datetime | None = None
    for name, moment in granted.items():
        pod = pods.get(name)
        expires = parse_rfc3339(moment) + DELETION_TIMEOUT
        if pod is None or pod.is_deleting or expires <= now:
            continue
        kept[name] = moment
        recheck = min(recheck or expires, expires)
    return Disrupted(kept, recheck)


def healthy(pods: Mapping[str, PodFacts], granted: Mapping[str, str]) -> int:
    """The pods that are ready and not about to be deleted."""
    return sum(1 for name, pod in pods.items() if pod.is_ready and not pod.is_deleting and name not in granted)


def status(budget: Object, counts: Counts, currently: int, granted: Mapping[str, str], now: datetime) -> Object:
    """Return the status; the same object if nothing changes."""
    before = budget.get("status") or {}
    spare = currently - counts.desired
    generation = budget["metadata"].get("generation", 0)
    allowed = max(spare, 0) if counts.expected > 0 else 0
    after: Object = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": currently,
        "desiredHealthy": counts.desired,
        "expectedPods": counts.expected,
    }
    if granted:
        after["disruptedPods"] = dict(granted)
    after["conditions"] = with_allowed(before.get("conditions"), allowed, generation, now)
    return before if after == before else after


def with_allowed(conditions: Sequence[Object] | None, allowed: int, generation: int, now: datetime) -> list[Object]:
    reason = "SufficientPods" if allowed else "InsufficientPods"
    wanted = {"type": ALLOWED, "status": "True" if allowed else "False", "reason": reason, "message": ""}
    return _with_generation(conditions, wanted, generation, now)


def failed(budget: Object, why: str, now: datetime) -> Object:
    """Return the status of a failed computation: no disruption is allowed."""
    before = budget.get("status") or {}
    wanted = {"type": ALLOWED, "status": "False", "reason": SYNC_FAILED, "message": why}
    conditions = _with_generation(before.get("conditions"), wanted, before.get("observedGeneration", 0), now)
    after = {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
        **before,
        "disruptionsAllowed": 0,
        "conditions": conditions,
    }
    return before if after == before else after


def _with_generation(
    conditions: Sequence[Object] | None, wanted: Object, generation: int, now: datetime
) -> list[Object]:
    if generation:
        wanted = {**wanted, "observedGeneration": generation}
    return with_condition(conditions, wanted, now)


def sync_failure(conditions: Sequence[Object] | None) -> str:
    """Return the error of the last computation, if it failed."""
    condition = find(conditions, ALLOWED)
    if condition and condition.get("status") == "False" and condition.get("reason") == SYNC_FAILED:
        return str(condition.get("message", ""))
    return ""
