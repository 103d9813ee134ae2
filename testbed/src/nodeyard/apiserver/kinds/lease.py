"""Leases."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of, spec_of, text_column
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.kinds.validation import not_negative_errors
from nodeyard.kube.fields import FieldError, invalid
from nodeyard.kube.json import Json, Object


class LeaseStrategy(BuiltIn):
    definition = "io.k8s.api.coordination.v1.Lease"
    plural = "leases"
    columns = (NAME, text_column("Holder", "Who holds the lease."), AGE)
    allows_unconditional_update = False
    allows_create_on_update = True

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return _without_election(obj)

    def prepare_update(self, new: Object, old: Object) -> Object:
        return _without_election(new)

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        return errors + not_negative_errors("spec", spec, "leaseTransitions")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return [name_of(obj), spec_of(obj).get("holderIdentity") or "", age_of(obj, now)]


def _without_election(obj: Object) -> Object:
    """Drop the fields of coordinated leader election, a feature that is off."""
    spec = obj.get("spec") or {}
    if "strategy" not in spec and "preferredHolder" not in spec:
        return obj
    return {**obj, "spec": {name: spec[name] for name in spec if name not in ("strategy", "preferredHolder")}}
