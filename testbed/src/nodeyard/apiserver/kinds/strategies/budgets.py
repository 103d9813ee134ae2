"""Disruption budgets."""

from __future__ import annotations

from nodeyard.apiserver.kinds import pod_disruption_budget as budgets
from nodeyard.apiserver.kinds.columns import budgets as columns
from nodeyard.apiserver.kinds.strategy import WithStatus
from nodeyard.apiserver.kinds.validation import path_segment_faults
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object


class BudgetStrategy(WithStatus):
    definition = "io.k8s.api.policy.v1.PodDisruptionBudget"
    plural = "poddisruptionbudgets"
    short_names = ("pdb",)
    printer = columns.BUDGET
    allows_unconditional_update = False

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return budgets.errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return budgets.errors(new)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return budgets.status_errors(new)
