"""StatefulSets."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import (
    AGE,
    CONTAINERS,
    NAME,
    age_of,
    container_cells,
    name_of,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.apiserver.kinds.edits import fill, replace
from nodeyard.apiserver.kinds.pod_template import template_errors
from nodeyard.apiserver.kinds.validation import (
    NOT_NEGATIVE,
    at_most_all_errors,
    count_errors,
    faults_at,
    is_zero,
    not_negative_errors,
    raw_json,
    required_choice_errors,
    selector_json,
)
from nodeyard.apiserver.kinds.workloads.workload import (
    REPLICAS,
    Workload,
    always_running_errors,
    available_errors,
    collision_errors,
    mismatch_errors,
    selector_errors,
    status_count_errors,
)
from nodeyard.kube.fields import FieldError, forbidden, invalid
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import label_faults
from nodeyard.kube.selectors import SelectorError

_MUTABLE_FIELDS = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _with_defaults(obj: Object) -> Object:
    strategy = obj.get("updateStrategy") or {}
    if not strategy.get("type"):
        strategy = {**strategy, "type": "RollingUpdate", "rollingUpdate": strategy.get("rollingUpdate") or {}}
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy = replace(strategy, rollingUpdate=fill(strategy["rollingUpdate"], {"partition": 0}))
    retention = fill(
        obj.get("persistentVolumeClaimRetentionPolicy") or {}, {"whenDeleted": "Retain", "whenScaled": "Retain"}
    )
    filled = fill(obj, {"podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10})
    return replace(filled, updateStrategy=strategy, persistentVolumeClaimRetentionPolicy=retention)


def _spec_errors(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _rollout_errors(spec.get("updateStrategy") or {})
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
        errors.append(invalid("spec.selector", selector_json(spec["selector"]), ""))
    return errors + always_running_errors(spec, "StatefulSet")


def _with_claims(spec: Object) -> Object:
    """Return the template as its pods will be: with a volume per volume claim template, and without host names."""
    template = spec.get("template") or {}
    pod = {
        field: value for field, value in (template.get("spec") or {}).items() if field not in ("hostname", "subdomain")
    }
    claims = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if claims:
        own = [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
        pod["volumes"] = [*({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims), *own]
    return {**template, "spec": pod}


def _rollout_errors(strategy: Object) -> list[FieldError]:
    path, kind, rolling = "spec.updateStrategy", strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is None:
            return []
        shown = raw_json({"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")})
        return [invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
    if kind != "RollingUpdate":
        shown = raw_json({"Type": kind, "RollingUpdate": rolling})
        return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    unavailable = rolling.get("maxUnavailable")
    where = f"{path}.rollingUpdate.maxUnavailable"
    errors = not_negative_errors(f"{path}.rollingUpdate", rolling, "partition") + count_errors(where, unavailable)
    if is_zero(unavailable):
        errors.append(invalid(where, unavailable, "cannot be 0"))
    return errors + at_most_all_errors(where, unavailable)


class StatefulSetStrategy(Workload):
    definition = "io.k8s.api.apps.v1.StatefulSet"
    plural = "statefulsets"
    short_names = ("sts",)
    categories = ("all",)
    scale = REPLICAS
    defaults = {"io.k8s.api.apps.v1.StatefulSetSpec": _with_defaults}
    columns = (NAME, text_column("Ready", "Ready pods of the desired number."), AGE, *CONTAINERS)
    names_pods = False

    def validate_name(self, name: str) -> list[str]:
        return label_faults(name)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return _without_max_unavailable(super().prepare_create(obj, now))

    def prepare_update(self, new: Object, old: Object) -> Object:
        return _without_max_unavailable(super().prepare_update(new, old))

    def validate_create(self, obj: Object) -> list[FieldError]:
        errors = _spec_errors(spec_of(obj))
        service = spec_of(obj).get("serviceName")
        return errors + (faults_at("spec.serviceName", service, label_faults) if service else [])

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = _spec_errors(spec_of(new))
        fixed, before = (
            {field: value for field, value in spec_of(obj).items() if field not in _MUTABLE_FIELDS}
            for obj in (new, old)
        )
        if fixed != before:
            listed = ", ".join(f"'{field}'" for field in _MUTABLE_FIELDS[:-1])
            detail = (
                f"updates to statefulset spec for fields other than {listed} and '{_MUTABLE_FIELDS[-1]}' are forbidden"
            )
            errors.append(forbidden("spec", detail))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = status_of(new)
        replicas = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        errors = status_count_errors(status, ("replicas", *replicas, "observedGeneration", "collisionCount"), replicas)
        return errors + available_errors(status, "status.readyReplicas") + collision_errors(new, old)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec = spec_of(obj)
        ready = f"{status_of(obj).get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
        return [name_of(obj), ready, age_of(obj, now), *container_cells(spec.get("template"))]


def _without_max_unavailable(obj: Object) -> Object:
    """Drop maxUnavailable: the feature is off."""
    strategy = obj["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    if "maxUnavailable" not in rolling:
        return obj
    rolling = {field: value for field, value in rolling.items() if field != "maxUnavailable"}
    return {**obj, "spec": {**obj["spec"], "updateStrategy": {**strategy, "rollingUpdate": rolling}}}
