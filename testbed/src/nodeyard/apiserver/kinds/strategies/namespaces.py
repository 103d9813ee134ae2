"""Namespaces: deleting one only begins it."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import namespaces as columns
from nodeyard.apiserver.kinds.edits import keep
from nodeyard.apiserver.kinds.strategy import WithStatus, reader
from nodeyard.apiserver.kinds.validation import namespaces
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults
from nodeyard.kube.timestamps import format_rfc3339

FINALIZER = "kubernetes"


class NamespaceStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Namespace"
    plural = "namespaces"
    namespaced = False
    short_names = ("ns",)
    printer = columns.NAMESPACE
    uses_generation = False
    allows_delete_collection = False
    has_own_field_labels = True
    returns_deleted = True
    fields = {"status.phase": reader("status", "phase")}

    def validate_name(self, name: str) -> list[str]:
        return label_faults(name)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        spec = obj.get("spec") or {}
        finalizers = list(dict.fromkeys([*(spec.get("finalizers") or ()), FINALIZER]))
        return {**obj, "spec": {**spec, "finalizers": finalizers}, "status": {"phase": "Active"}}

    def prepare_update(self, new: Object, old: Object) -> Object:
        return keep(keep(new, old, "status"), old, "spec")

    def prepare_delete(self, obj: Object, now: datetime) -> Object | None:
        """Deletion only begins here: the namespace controller empties it and then takes the finalizer away."""
        metadata, status = obj["metadata"], obj.get("status") or {}
        if not self.holds(obj) and not metadata.get("finalizers"):
            return None
        if "deletionTimestamp" not in metadata:
            metadata = {**metadata, "deletionTimestamp": format_rfc3339(now)}
        return {**obj, "metadata": metadata, "status": {**status, "phase": "Terminating"}}

    def holds(self, obj: Object) -> bool:
        return bool((obj.get("spec") or {}).get("finalizers"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return namespaces.errors(obj)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return namespaces.status_errors(new, old)
