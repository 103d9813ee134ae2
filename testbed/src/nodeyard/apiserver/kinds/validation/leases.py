"""Leases."""

from __future__ import annotations

from nodeyard.apiserver.kinds.validation.syntax import not_negative_errors
from nodeyard.kube.fields import FieldError, invalid
from nodeyard.kube.json import Object


def errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        found.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    return found + not_negative_errors("spec", spec, "leaseTransitions")
