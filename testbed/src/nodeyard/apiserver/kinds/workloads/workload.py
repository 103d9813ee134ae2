"""Common parts of workloads: validation of selectors, templates and counts, and a warning about names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from nodeyard.apiserver.kinds.columns import spec_of, status_of
from nodeyard.apiserver.kinds.pod_template import template_errors
from nodeyard.apiserver.kinds.strategy import WithStatus
from nodeyard.apiserver.kinds.validation import IMMUTABLE, not_negative_errors, raw_json, selector_json, unsupported
from nodeyard.apiserver.resources import Scale
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, forbidden, invalid, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import label_faults
from nodeyard.kube.selectors import SelectorError, from_object, object_errors

_NAME_ADVICE = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended: "
)
REPLICAS = Scale(".spec.replicas", ".status.replicas", ".spec.selector")
_MISMATCH = "`selector` does not match template `labels`"
_MORE_THAN_ALL = "cannot be greater than status.replicas"


def selector_errors(spec: Object, noun: str) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    errors = object_errors(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", selector_json(selector), f"empty selector is invalid for {noun}"))
    return errors


def mismatch_errors(spec: Object) -> list[FieldError]:
    """Check that the selector matches the pods of the template. Raises SelectorError if the selector is invalid."""
    selector = from_object(spec.get("selector"))
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if selector.empty or selector.matches(labels or {}):
        return []
    shown: Json = raw_json(dict(sorted(labels.items()))) if labels else None
    return [invalid("spec.template.metadata.labels", shown, _MISMATCH)]


def always_running_errors(spec: Object, noun: str) -> list[FieldError]:
    pod = (spec.get("template") or {}).get("spec") or {}
    errors: list[FieldError] = []
    if pod.get("restartPolicy") != "Always":
        errors.append(unsupported("spec.template.spec.restartPolicy", pod.get("restartPolicy", ""), "Always"))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {noun} is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return errors


def replica_template_errors(spec: Object) -> list[FieldError]:
    try:
        errors = mismatch_errors(spec)
    except SelectorError:
        return [invalid("spec.selector", selector_json(spec["selector"]), "invalid label selector")]
    errors += template_errors(spec.get("template") or {}, "spec.template")
    return errors + always_running_errors(spec, "ReplicaSet")


def immutable_selector_errors(new: Object, old: Object) -> list[FieldError]:
    selector = spec_of(new).get("selector")
    if selector == spec_of(old).get("selector"):
        return []
    return [invalid("spec.selector", selector_json(selector), IMMUTABLE)]


def status_count_errors(
    status: Mapping[str, Any], counted: tuple[str, ...], bounded: tuple[str, ...]
) -> list[FieldError]:
    errors = not_negative_errors("status", status, *counted)
    total = status.get("replicas", 0)
    errors += [
        invalid(f"status.{field}", status.get(field, 0), _MORE_THAN_ALL)
        for field in bounded
        if status.get(field, 0) > total
    ]
    return errors


def available_errors(status: Mapping[str, Any], ready: str = "readyReplicas") -> list[FieldError]:
    available = status.get("availableReplicas", 0)
    if available <= status.get("readyReplicas", 0):
        return []
    return [invalid("status.availableReplicas", available, f"cannot be greater than {ready}")]


def collision_errors(new: Object, old: Object) -> list[FieldError]:
    count, before = status_of(new).get("collisionCount") or 0, status_of(old).get("collisionCount") or 0
    return [invalid("status.collisionCount", count, "cannot be decremented")] if count < before else []


class Workload(WithStatus):
    """A kind that makes pods from a template."""

    names_pods: ClassVar[bool] = True
    """True if the name becomes part of host names: one that is not a DNS label then gets a warning."""

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        faults = label_faults(meta.name(obj)) if old is None and self.names_pods else []
        return [f"{_NAME_ADVICE}[{' '.join(faults)}]"] if faults else []
