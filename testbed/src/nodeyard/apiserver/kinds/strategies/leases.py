"""Leases."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import leases as columns
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.kinds.validation import leases
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object


class LeaseStrategy(BuiltIn):
    definition = "io.k8s.api.coordination.v1.Lease"
    plural = "leases"
    printer = columns.LEASE
    allows_unconditional_update = False
    allows_create_on_update = True

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return _without_election(obj)

    def prepare_update(self, new: Object, old: Object) -> Object:
        return _without_election(new)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return leases.errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return leases.errors(new)


def _without_election(obj: Object) -> Object:
    """Coordinated leader election is a feature that is off."""
    spec = obj.get("spec") or {}
    if "strategy" not in spec and "preferredHolder" not in spec:
        return obj
    return {**obj, "spec": {name: spec[name] for name in spec if name not in ("strategy", "preferredHolder")}}
