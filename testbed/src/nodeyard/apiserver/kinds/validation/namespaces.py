"""Namespaces."""

from __future__ import annotations

from nodeyard.apiserver.kinds.validation.syntax import faults_at
from nodeyard.kube.fields import FieldError, invalid
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults


def errors(obj: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name in (obj.get("spec") or {}).get("finalizers") or ():
        found += faults_at("spec.finalizers", name, qualified_name_faults)
        if "/" not in name and name != "kubernetes":
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(invalid("spec.finalizers", name, detail))
    return found


def status_errors(new: Object, old: Object) -> list[FieldError]:
    """Terminating and being deleted are one."""
    phase = (new.get("status") or {}).get("phase", "")
    if new["metadata"].get("deletionTimestamp"):
        wanted, why = "Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"
    else:
        wanted, why = "Active", "may only be 'Active' if `deletionTimestamp` is empty"
    return [] if phase == wanted else [invalid("status.Phase", phase, why)]
