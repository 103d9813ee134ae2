"""APIServices: which server is behind a version of a group. They are kept and told, and lead nowhere from here."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds import api_service as registrations
from nodeyard.apiserver.kinds.columns import registrations as columns
from nodeyard.apiserver.kinds.edits import keep_metadata
from nodeyard.apiserver.kinds.strategy import Paths, WithStatus
from nodeyard.apiserver.kinds.validation import path_segment_faults
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339

_KEPT = ("labels", "annotations", "finalizers", "ownerReferences")


class APIServiceStrategy(WithStatus):
    definition = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"
    plural = "apiservices"
    namespaced = False
    categories = ("api-extensions",)
    printer = columns.API_SERVICE
    uses_generation = False
    allows_unconditional_update = False

    def reset_fields(self, subresource: str) -> Paths:
        return (("spec",), ("metadata",)) if subresource == "status" else (("status",),)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        is_local = (obj.get("spec") or {}).get("service") is None
        return {**obj, "status": {"conditions": [_available(now)]} if is_local else {}}

    def prepare_status(self, new: Object, old: Object) -> Object:
        return keep_metadata(super().prepare_status(new, old), old, *_KEPT)

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return registrations.errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return registrations.errors(new)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return registrations.status_errors(new)


def _available(now: datetime) -> Object:
    return {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": format_rfc3339(now),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
