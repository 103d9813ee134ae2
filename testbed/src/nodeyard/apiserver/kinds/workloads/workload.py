"""Deployments, ReplicaSets, StatefulSets, DaemonSets and their revisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodeyard.apiserver.kinds.pod_template import template_errors
from nodeyard.apiserver.kinds.validation import (
    IMMUTABLE,
    NOT_NEGATIVE,
    at_most_all_errors,
    count_errors,
    faults_at,
    is_zero,
    not_negative_errors,
    required_choice_errors,
    shown_selector,
    unsupported,
    written,
)
from nodeyard.kube.fields import FieldError, forbidden, invalid, required
from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.kube.names import label_faults
from nodeyard.kube.selectors import SelectorError, from_object, object_errors

_MISMATCH = "`selector` does not match template `labels`"
_STATEFUL_FIELDS = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_MORE_THAN_ALL = "cannot be greater than status.replicas"


def _spec(obj: Object) -> Object:
    return obj.get("spec") or {}


def _status(obj: Object) -> Object:
    return obj.get("status") or {}


# what they have in common


def selector_errors(spec: Object, noun: str) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    errors = object_errors(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", shown_selector(selector), f"empty selector is invalid for {noun}"))
    return errors


def mismatch_errors(spec: Object) -> list[FieldError]:
    """A template whose pods the selector would not find; raises SelectorError when the selector is no selector."""
    selector = from_object(spec.get("selector"))
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if selector.empty or selector.matches(labels or {}):
        return []
    shown: Json = written(dict(sorted(labels.items()))) if labels else None
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


def _replicated_template_errors(spec: Object) -> list[FieldError]:
    try:
        errors = mismatch_errors(spec)
    except SelectorError:
        return [invalid("spec.selector", shown_selector(spec["selector"]), "invalid label selector")]
    errors += template_errors(spec.get("template") or {}, "spec.template")
    return errors + always_running_errors(spec, "ReplicaSet")


def immutable_selector_errors(new: Object, old: Object) -> list[FieldError]:
    selector = _spec(new).get("selector")
    if selector == _spec(old).get("selector"):
        return []
    return [invalid("spec.selector", shown_selector(selector), IMMUTABLE)]


def _count_errors(status: Mapping[str, Any], counted: tuple[str, ...], bounded: tuple[str, ...]) -> list[FieldError]:
    errors = not_negative_errors("status", status, *counted)
    total = status.get("replicas", 0)
    errors += [
        invalid(f"status.{field}", status.get(field, 0), _MORE_THAN_ALL)
        for field in bounded
        if status.get(field, 0) > total
    ]
    return errors


def _available_errors(status: Mapping[str, Any], ready: str = "readyReplicas") -> list[FieldError]:
    available = status.get("availableReplicas", 0)
    if available <= status.get("readyReplicas", 0):
        return []
    return [invalid("status.availableReplicas", available, f"cannot be greater than {ready}")]


def collision_errors(new: Object, old: Object) -> list[FieldError]:
    count, before = _status(new).get("collisionCount") or 0, _status(old).get("collisionCount") or 0
    return [invalid("status.collisionCount", count, "cannot be decremented")] if count < before else []


# deployments and replica sets


def deployment_errors(obj: Object) -> list[FieldError]:
    spec = _spec(obj)
    errors = not_negative_errors("spec", spec, "replicas") + selector_errors(spec, "deployment")
    errors += _replicated_template_errors(spec) + _rollout_errors(spec.get("strategy") or {})
    errors += not_negative_errors("spec", spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _rollout_errors(strategy: Object) -> list[FieldError]:
    path, kind, rolling = "spec.strategy", strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is None:
            return []
        return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
    if kind != "RollingUpdate":
        shown = written({"Type": kind, "RollingUpdate": rolling})
        return [unsupported(path, shown, "Recreate", "RollingUpdate")]
    if rolling is None:
        return [required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    where = f"{path}.rollingUpdate"
    errors = count_errors(f"{where}.maxUnavailable", unavailable) + count_errors(f"{where}.maxSurge", surge)
    if is_zero(unavailable) and is_zero(surge):
        errors.append(invalid(f"{where}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_all_errors(f"{where}.maxUnavailable", unavailable)


def deployment_update_errors(new: Object, old: Object) -> list[FieldError]:
    return deployment_errors(new) + immutable_selector_errors(new, old)


def deployment_status_errors(new: Object, old: Object) -> list[FieldError]:
    status = _status(new)
    counted = (
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "terminatingReplicas", "collisionCount",
    )  # fmt: skip
    errors = _count_errors(status, counted, ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return errors + _available_errors(status) + collision_errors(new, old)


def replica_set_errors(obj: Object) -> list[FieldError]:
    spec = _spec(obj)
    errors = not_negative_errors("spec", spec, "replicas", "minReadySeconds")
    return errors + selector_errors(spec, "deployment") + _replicated_template_errors(spec)


def replica_set_update_errors(new: Object, old: Object) -> list[FieldError]:
    return replica_set_errors(new) + immutable_selector_errors(new, old)


def replica_set_status_errors(new: Object, old: Object) -> list[FieldError]:
    status = _status(new)
    counted = (
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
        "terminatingReplicas",
    )  # fmt: skip
    errors = _count_errors(status, counted, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"))
    return errors + _available_errors(status)


# stateful sets


def stateful_set_errors(obj: Object) -> list[FieldError]:
    errors = _stateful_set_spec_errors(_spec(obj))
    service = _spec(obj).get("serviceName")
    return errors + (faults_at("spec.serviceName", service, label_faults) if service else [])


def _stateful_set_spec_errors(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _stateful_rollout_errors(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
        errors += required_choice_errors(path, retention.get(field), "Retain", "Delete")
    errors += not_negative_errors("spec", spec, "replicas", "minReadySeconds")
    start = (spec.get("ordinals") or {}).get("start", 0)
    if start < 0:
        errors.append(invalid("spec.ordinals.start", start, NOT_NEGATIVE))
    errors += selector_errors(spec, "statefulset")
    try:
        errors += mismatch_errors(spec)
        errors += template_errors(_with_claims(spec), "spec.template")
    except SelectorError:
        errors.append(invalid("spec.selector", shown_selector(spec["selector"]), ""))
    return errors + always_running_errors(spec, "StatefulSet")


def _with_claims(spec: Object) -> Object:
    """The template as its pods will be: each volume claim template is a volume, and host names are set per pod."""
    template = spec.get("template") or {}
    pod = {
        field: value for field, value in (template.get("spec") or {}).items() if field not in ("hostname", "subdomain")
    }
    claims = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if claims:
        own = [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
        pod["volumes"] = [*({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims), *own]
    return {**template, "spec": pod}


def _stateful_rollout_errors(strategy: Object) -> list[FieldError]:
    path, kind, rolling = "spec.updateStrategy", strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is None:
            return []
        shown = written({"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")})
        return [invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
    if kind != "RollingUpdate":
        shown = written({"Type": kind, "RollingUpdate": rolling})
        return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    unavailable = rolling.get("maxUnavailable")
    where = f"{path}.rollingUpdate.maxUnavailable"
    errors = not_negative_errors(f"{path}.rollingUpdate", rolling, "partition") + count_errors(where, unavailable)
    if is_zero(unavailable):
        errors.append(invalid(where, unavailable, "cannot be 0"))
    return errors + at_most_all_errors(where, unavailable)


def stateful_set_update_errors(new: Object, old: Object) -> list[FieldError]:
    errors = _stateful_set_spec_errors(_spec(new))
    fixed, before = (
        {field: value for field, value in _spec(obj).items() if field not in _STATEFUL_FIELDS} for obj in (new, old)
    )
    if fixed != before:
        listed = ", ".join(f"'{field}'" for field in _STATEFUL_FIELDS[:-1])
        detail = (
            f"updates to statefulset spec for fields other than {listed} and '{_STATEFUL_FIELDS[-1]}' are forbidden"
        )
        errors.append(forbidden("spec", detail))
    return errors


def stateful_set_status_errors(new: Object, old: Object) -> list[FieldError]:
    status = _status(new)
    replicas = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    errors = _count_errors(status, ("replicas", *replicas, "observedGeneration", "collisionCount"), replicas)
    return errors + _available_errors(status, "status.readyReplicas") + collision_errors(new, old)


# daemon sets


def daemon_set_errors(obj: Object) -> list[FieldError]:
    spec = _spec(obj)
    selector = spec.get("selector")
    errors = object_errors(selector, "spec.selector")
    if not errors:
        errors += mismatch_errors(spec)
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", shown_selector(selector), "empty selector is invalid for daemonset"))
    errors += template_errors(spec.get("template") or {}, "spec.template") + always_running_errors(spec, "DaemonSet")
    errors += not_negative_errors("spec", spec, "minReadySeconds")
    errors += _daemon_rollout_errors(spec.get("updateStrategy") or {})
    return errors + not_negative_errors("spec", spec, "revisionHistoryLimit")


def _daemon_rollout_errors(strategy: Object) -> list[FieldError]:
    path, kind, rolling = "spec.updateStrategy", strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        shown = written({"Type": kind, "RollingUpdate": rolling})
        return [unsupported(path, shown, "RollingUpdate", "OnDelete")]
    if rolling is None:
        return [required(f"{path}.rollingUpdate")]
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    where = f"{path}.rollingUpdate"
    errors = count_errors(f"{where}.maxUnavailable", unavailable) + count_errors(f"{where}.maxSurge", surge)
    errors += at_most_all_errors(f"{where}.maxUnavailable", unavailable)
    errors += at_most_all_errors(f"{where}.maxSurge", surge)
    if is_zero(unavailable) and is_zero(surge):
        errors.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    elif not is_zero(unavailable) and not is_zero(surge):
        errors.append(invalid(f"{where}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    return errors


def daemon_set_update_errors(new: Object, old: Object) -> list[FieldError]:
    return immutable_selector_errors(new, old) + daemon_set_errors(new)


def daemon_set_status_errors(new: Object, old: Object) -> list[FieldError]:
    counted = (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
    )  # fmt: skip
    return not_negative_errors("status", _status(new), *counted) + collision_errors(new, old)


# controller revisions


def revision_errors(obj: Object) -> list[FieldError]:
    revision = obj.get("revision", 0)
    errors = [] if revision >= 0 else [invalid("revision", revision, NOT_NEGATIVE)]
    data = obj.get("data")
    if data is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(invalid("data", data, "data must be a valid JSON object"))
    return errors


def revision_update_errors(new: Object, old: Object) -> list[FieldError]:
    errors = revision_errors(new)
    if not json_equal(new.get("data"), old.get("data")):
        errors.append(invalid("data", new.get("data"), IMMUTABLE))
    return errors
