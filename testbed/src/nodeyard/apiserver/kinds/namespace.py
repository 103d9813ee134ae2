"""Namespaces. Their finalizer stands in the spec; the namespace controller removes it when all content is gone."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of, status_of, text_column
from nodeyard.apiserver.kinds.edits import filler, keep
from nodeyard.apiserver.kinds.strategy import WithStatus, reader
from nodeyard.apiserver.kinds.validation import faults_at
from nodeyard.apiserver.resources import GroupVersionKind, Subresource
from nodeyard.kube.fields import FieldError, invalid
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import NAMESPACE_NAME, label_faults, qualified_name_faults
from nodeyard.kube.timestamps import format_rfc3339

FINALIZER = "kubernetes"


def _with_name_label(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    name, labels = metadata.get("name"), metadata.get("labels") or {}
    if not name or labels.get(NAMESPACE_NAME) == name:
        return obj
    return {**obj, "metadata": {**metadata, "labels": {**labels, NAMESPACE_NAME: name}}}


class NamespaceStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Namespace"
    plural = "namespaces"
    namespaced = False
    short_names = ("ns",)
    subresources = (Subresource("finalize", GroupVersionKind("", "v1", "Namespace"), ("update",)),)
    defaults = {
        "io.k8s.api.core.v1.Namespace": _with_name_label,
        "io.k8s.api.core.v1.NamespaceStatus": filler({"phase": "Active"}),
    }
    columns = (NAME, text_column("Status", "Active, or being deleted."), AGE)
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
        """Set phase Terminating. Nothing special is left to do once no finalizer holds the namespace."""
        metadata, status = obj["metadata"], obj.get("status") or {}
        if not self.holds(obj) and not metadata.get("finalizers"):
            return None
        if "deletionTimestamp" not in metadata:
            metadata = {**metadata, "deletionTimestamp": format_rfc3339(now)}
        return {**obj, "metadata": metadata, "status": {**status, "phase": "Terminating"}}

    def holds(self, obj: Object) -> bool:
        return bool((obj.get("spec") or {}).get("finalizers"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        for finalizer in (obj.get("spec") or {}).get("finalizers") or ():
            errors += faults_at("spec.finalizers", finalizer, qualified_name_faults)
            if "/" not in finalizer and finalizer != FINALIZER:
                detail = "name is neither a standard finalizer name nor is it fully qualified"
                errors.append(invalid("spec.finalizers", finalizer, detail))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        phase = (new.get("status") or {}).get("phase", "")
        if new["metadata"].get("deletionTimestamp"):
            expected, why = "Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"
        else:
            expected, why = "Active", "may only be 'Active' if `deletionTimestamp` is empty"
        return [] if phase == expected else [invalid("status.Phase", phase, why)]

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return [name_of(obj), status_of(obj).get("phase", ""), age_of(obj, now)]
