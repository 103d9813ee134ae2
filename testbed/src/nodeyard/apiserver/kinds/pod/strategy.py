"""Pods: wanted once, then run; and the templates they are made from."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.edits import keep, keep_metadata
from nodeyard.apiserver.kinds.pod import columns
from nodeyard.apiserver.kinds.pod import update_validation as pod_updates
from nodeyard.apiserver.kinds.pod import validation as pods
from nodeyard.apiserver.kinds.priorities import PRIORITY_FIELDS, with_priority
from nodeyard.apiserver.kinds.quality import quality_of_service
from nodeyard.apiserver.kinds.strategy import BuiltIn, Paths, WithStatus, flag, reader
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults
from nodeyard.kube.timestamps import format_rfc3339

FINISHED = ("Failed", "Succeeded")
_POD_NAME_ADVICE = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
    "recommended: "
)


class PodStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Pod"
    plural = "pods"
    short_names = ("po",)
    categories = ("all",)
    printer = columns.POD
    has_own_field_labels = True
    returns_deleted = True
    is_graceful = True
    fields = {
        "spec.nodeName": reader("spec", "nodeName"),
        "spec.restartPolicy": reader("spec", "restartPolicy"),
        "spec.schedulerName": reader("spec", "schedulerName"),
        "spec.serviceAccountName": reader("spec", "serviceAccountName"),
        "spec.hostNetwork": flag("spec", "hostNetwork"),
        "status.phase": reader("status", "phase"),
        "status.podIP": lambda obj: _first_address(obj),
        "status.nominatedNodeName": reader("status", "nominatedNodeName"),
    }

    def reset_fields(self, subresource: str) -> Paths:
        if subresource == "status":
            return (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))
        return (("status",),)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        status: Object = {"phase": "Pending", "qosClass": quality_of_service(obj.get("spec") or {})}
        if (obj.get("spec") or {}).get("schedulingGates"):
            status["conditions"] = [{**_GATED, "lastTransitionTime": format_rfc3339(now)}]
        return {**obj, "spec": with_priority(obj["metadata"].get("name", ""), obj["spec"]), "status": status}

    def prepare_update(self, new: Object, old: Object) -> Object:
        """Who leaves out what priority the pod was given does not mean to change it."""
        kept = keep(new, old, "status")
        spec, before = kept.get("spec") or {}, old.get("spec") or {}
        missing = {field: before[field] for field in PRIORITY_FIELDS if field in before and field not in spec}
        return {**kept, "spec": {**spec, **missing}} if missing else kept

    def prepare_status(self, new: Object, old: Object) -> Object:
        kept = keep_metadata(keep(new, old, "spec"), old, "deletionTimestamp", "ownerReferences")
        return {**kept, "status": _settled(kept.get("status") or {}, old.get("status") or {})}

    def validate_create(self, obj: Object) -> list[FieldError]:
        return pods.create_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return pod_updates.update_errors(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return pod_updates.status_errors(new, old)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None:
            return []
        faults = label_faults(obj["metadata"].get("name", ""))
        return [f"{_POD_NAME_ADVICE}[{' '.join(faults)}]"] if faults else []

    def grace_period(self, obj: Object, asked: int | None) -> int:
        spec = obj.get("spec") or {}
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in FINISHED:
            return 0
        seconds = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
        return seconds if seconds >= 0 else 1


_GATED: Object = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def _first_address(obj: Object) -> str:
    addresses = (obj.get("status") or {}).get("podIPs") or [{}]
    return str(addresses[0].get("ip") or "")


def _settled(status: Object, before: Object) -> Object:
    """What old kubelets forget: the class of service, and which generation was observed."""
    for field in ("qosClass", "observedGeneration"):
        if not status.get(field) and before.get(field):
            status = {**status, field: before[field]}
    known = {
        condition.get("type"): condition["observedGeneration"]
        for condition in before.get("conditions") or ()
        if condition.get("observedGeneration")
    }
    if known and status.get("conditions"):
        conditions = [
            {"observedGeneration": known[each["type"]], **each} if each.get("type") in known else each
            for each in status["conditions"]
        ]
        status = {**status, "conditions": conditions}
    return status


class PodTemplateStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.PodTemplate"
    plural = "podtemplates"
    printer = columns.POD_TEMPLATE
    uses_generation = True

    def changes_generation(self, new: Object, old: Object) -> bool:
        return bool(new.get("template") != old.get("template"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return pods.template_errors(obj.get("template") or {}, "template")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)
