"""PodDisruptionBudgets."""

from __future__ import annotations

from nodeyard.apiserver.kinds.validation import (
    at_most_all_errors,
    choice_errors,
    count_errors,
    not_negative_errors,
    shown_selector,
    written,
)
from nodeyard.kube.fields import FieldError, invalid
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import object_errors


def errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    found: list[FieldError] = []
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": shown_selector(spec.get("selector")),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        found.append(invalid("spec", written(shown), "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        found += count_errors(f"spec.{field}", spec.get(field)) + at_most_all_errors(f"spec.{field}", spec.get(field))
    found += object_errors(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        choices = ("AlwaysAllow", "IfHealthyBudget")
        found += choice_errors("spec.unhealthyPodEvictionPolicy", policy, *choices)
    return found


def status_errors(obj: Object) -> list[FieldError]:
    counted = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return not_negative_errors("status", obj.get("status") or {}, *counted)
