"""A pod's priority, from the class it names.

PriorityClasses are not served here; the two that every cluster has are known.
"""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.kube.json import Object

PRIORITY_FIELDS = ("priority", "preemptionPolicy")
PREEMPT = "PreemptLowerPriority"
_CLASSES = {"": 0, "system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def with_priority(name: str, spec: Object) -> Object:
    """The spec of a new pod with its priority; 403 for a class that is not there or a priority that is not its own."""
    given = spec.get("priorityClassName") or ""
    if given not in _CLASSES:
        raise errors.forbidden("", "pods", name, f"no PriorityClass with name {given} was found")
    priority, policy = _CLASSES[given], spec.get("preemptionPolicy")
    if spec.get("priority", priority) != priority:
        raise errors.forbidden("", "pods", name, _refusal("integer value of priority", spec["priority"], priority))
    if policy is not None and policy != PREEMPT:
        raise errors.forbidden("", "pods", name, _refusal("string value of PreemptionPolicy", policy, PREEMPT))
    return {**spec, "priority": priority, "preemptionPolicy": PREEMPT}


def _refusal(what: str, given: int | str, computed: int | str) -> str:
    return (
        f"the {what} ({given}) must not be provided in pod spec; priority admission controller computed {computed} "
        "from the given PriorityClass name"
    )
