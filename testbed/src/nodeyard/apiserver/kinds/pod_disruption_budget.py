"""PodDisruptionBudgets. The eviction subresource and the disruption controller act on them."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import (
    AGE,
    NAME,
    age_of,
    name_of,
    number_column,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.apiserver.kinds.strategy import WithStatus
from nodeyard.apiserver.kinds.validation import (
    at_most_all_errors,
    choice_errors,
    count_errors,
    not_negative_errors,
    path_segment_faults,
    raw_json,
    selector_json,
)
from nodeyard.kube.fields import FieldError, invalid
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import object_errors

_NOT_GIVEN = "N/A"


class PodDisruptionBudgetStrategy(WithStatus):
    definition = "io.k8s.api.policy.v1.PodDisruptionBudget"
    plural = "poddisruptionbudgets"
    short_names = ("pdb",)
    columns = (
        NAME,
        text_column("Min Available", "Pods that must stay."),
        text_column("Max Unavailable", "Pods that may be missing."),
        number_column("Allowed Disruptions", "Pods that may be evicted now."),
        AGE,
    )
    allows_unconditional_update = False

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        found: list[FieldError] = []
        if least is not None and most is not None:
            shown = {
                "MinAvailable": least,
                "Selector": selector_json(spec.get("selector")),
                "MaxUnavailable": most,
                "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
            }
            found.append(invalid("spec", raw_json(shown), "minAvailable and maxUnavailable cannot be both set"))
        for field in ("minAvailable", "maxUnavailable"):
            found += count_errors(f"spec.{field}", spec.get(field))
            found += at_most_all_errors(f"spec.{field}", spec.get(field))
        found += object_errors(spec.get("selector"), "spec.selector")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None:
            choices = ("AlwaysAllow", "IfHealthyBudget")
            found += choice_errors("spec.unhealthyPodEvictionPolicy", policy, *choices)
        return found

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        counted = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        return not_negative_errors("status", new.get("status") or {}, *counted)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec = spec_of(obj)
        return [
            name_of(obj),
            _NOT_GIVEN if spec.get("minAvailable") is None else str(spec["minAvailable"]),
            _NOT_GIVEN if spec.get("maxUnavailable") is None else str(spec["maxUnavailable"]),
            status_of(obj).get("disruptionsAllowed", 0),
            age_of(obj, now),
        ]
