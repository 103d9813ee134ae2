"""Strategy of pods, with the QoS class that they get on creation. Their priority is set by admission."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from nodeyard.apiserver.kinds.edits import keep, keep_metadata
from nodeyard.apiserver.kinds.pod.columns import COLUMNS, pod_cells
from nodeyard.apiserver.kinds.pod.defaults import DEFAULTS
from nodeyard.apiserver.kinds.pod.update_validation import status_errors, update_errors
from nodeyard.apiserver.kinds.pod.validation import create_errors
from nodeyard.apiserver.kinds.strategy import Paths, WithStatus, flag, reader
from nodeyard.apiserver.resources import GroupVersionKind, Subresource
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import label_faults
from nodeyard.kube.quantity import parse
from nodeyard.kube.timestamps import format_rfc3339

BINDING: Final = GroupVersionKind("", "v1", "Binding")
EVICTION: Final = GroupVersionKind("policy", "v1", "Eviction")
FINISHED = ("Failed", "Succeeded")
_POD_NAME_ADVICE = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
    "recommended: "
)
_GATED: Object = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_QOS_RESOURCES = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Guaranteed: all containers have equal requests and limits of CPU and memory. BestEffort: none has any."""
    if spec.get("resources"):
        return _qos_class([spec["resources"]])
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return _qos_class(container.get("resources") or {} for container in containers)


def _qos_class(all_resources: Iterable[Object]) -> str:
    has_any, is_guaranteed = False, True
    for resources in all_resources:
        requests, limits = _positive_amounts(resources.get("requests")), _positive_amounts(resources.get("limits"))
        has_any = has_any or bool(requests or limits)
        is_guaranteed = (
            is_guaranteed
            and len(limits) == len(_QOS_RESOURCES)
            and all(requests.get(name, amount) == amount for name, amount in limits.items())
        )
    if not has_any:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _positive_amounts(amounts: Object | None) -> Object:
    found = {name: parse(amounts[name]) for name in _QOS_RESOURCES if amounts and name in amounts}
    return {name: amount for name, amount in found.items() if amount}


class PodStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Pod"
    plural = "pods"
    short_names = ("po",)
    categories = ("all",)
    subresources = (Subresource("binding", BINDING, ("create",)), Subresource("eviction", EVICTION, ("create",)))
    columns = COLUMNS
    defaults = DEFAULTS
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
        status: Object = {"phase": "Pending", "qosClass": qos_class(obj.get("spec") or {})}
        if (obj.get("spec") or {}).get("schedulingGates"):
            status["conditions"] = [{**_GATED, "lastTransitionTime": format_rfc3339(now)}]
        return {**obj, "status": status}

    def prepare_status(self, new: Object, old: Object) -> Object:
        kept = keep_metadata(keep(new, old, "spec"), old, "deletionTimestamp", "ownerReferences")
        return {**kept, "status": _with_kept_fields(kept.get("status") or {}, old.get("status") or {})}

    def validate_create(self, obj: Object) -> list[FieldError]:
        return create_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return update_errors(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return status_errors(new, old)

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

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return pod_cells(obj, now)


def _first_address(obj: Object) -> str:
    addresses = (obj.get("status") or {}).get("podIPs") or [{}]
    return str(addresses[0].get("ip") or "")


def _with_kept_fields(status: Object, before: Object) -> Object:
    """Keep the QoS class and the observed generations, which old kubelets leave out."""
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
