"""Deployments."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import (
    AGE,
    CONTAINERS,
    NAME,
    SELECTOR,
    age_of,
    container_cells,
    name_of,
    selector_text,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.apiserver.kinds.edits import fill, keep_metadata, replace
from nodeyard.apiserver.kinds.strategy import Paths
from nodeyard.apiserver.kinds.validation import (
    at_most_all_errors,
    count_errors,
    is_zero,
    not_negative_errors,
    raw_json,
    unsupported,
)
from nodeyard.apiserver.kinds.workloads.workload import (
    REPLICAS,
    Workload,
    available_errors,
    collision_errors,
    immutable_selector_errors,
    replica_template_errors,
    selector_errors,
    status_count_errors,
)
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, forbidden, invalid, required
from nodeyard.kube.json import Json, Object


def _with_defaults(obj: Object) -> Object:
    strategy = fill(obj.get("strategy") or {}, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = fill(strategy.get("rollingUpdate") or {}, {"maxUnavailable": "25%", "maxSurge": "25%"})
        strategy = replace(strategy, rollingUpdate=rolling)
    filled = fill(obj, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    return replace(filled, strategy=strategy)


def _rollout_errors(strategy: Object) -> list[FieldError]:
    path, kind, rolling = "spec.strategy", strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is None:
            return []
        return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
    if kind != "RollingUpdate":
        shown = raw_json({"Type": kind, "RollingUpdate": rolling})
        return [unsupported(path, shown, "Recreate", "RollingUpdate")]
    if rolling is None:
        return [required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    where = f"{path}.rollingUpdate"
    errors = count_errors(f"{where}.maxUnavailable", unavailable) + count_errors(f"{where}.maxSurge", surge)
    if is_zero(unavailable) and is_zero(surge):
        errors.append(invalid(f"{where}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_all_errors(f"{where}.maxUnavailable", unavailable)


class DeploymentStrategy(Workload):
    definition = "io.k8s.api.apps.v1.Deployment"
    plural = "deployments"
    short_names = ("deploy",)
    categories = ("all",)
    scale = REPLICAS
    defaults = {"io.k8s.api.apps.v1.DeploymentSpec": _with_defaults}
    columns = (
        NAME,
        text_column("Ready", "Ready pods of the desired number."),
        text_column("Up-to-date", "Pods of the current template."),
        text_column("Available", "Pods that have been ready long enough."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    )

    def reset_fields(self, subresource: str) -> Paths:
        return (("spec",), ("metadata", "labels")) if subresource == "status" else (("status",),)

    def prepare_status(self, new: Object, old: Object) -> Object:
        return keep_metadata(super().prepare_status(new, old), old, "labels")

    def changes_generation(self, new: Object, old: Object) -> bool:
        """Annotations count as well, as in kube-apiserver."""
        return super().changes_generation(new, old) or meta.annotations(new) != meta.annotations(old)

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = spec_of(obj)
        errors = not_negative_errors("spec", spec, "replicas") + selector_errors(spec, "deployment")
        errors += replica_template_errors(spec) + _rollout_errors(spec.get("strategy") or {})
        errors += not_negative_errors(
            "spec", spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"
        )
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new) + immutable_selector_errors(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = status_of(new)
        counted = (
            "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
            "unavailableReplicas", "terminatingReplicas", "collisionCount",
        )  # fmt: skip
        errors = status_count_errors(status, counted, ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + available_errors(status) + collision_errors(new, old)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec, status = spec_of(obj), status_of(obj)
        return [
            name_of(obj),
            f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
            status.get("updatedReplicas", 0),
            status.get("availableReplicas", 0),
            age_of(obj, now),
            *container_cells(spec.get("template")),
            selector_text(spec.get("selector")),
        ]
