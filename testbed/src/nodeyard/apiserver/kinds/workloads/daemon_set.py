"""DaemonSets."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import (
    AGE,
    CONTAINERS,
    NAME,
    SELECTOR,
    age_of,
    container_cells,
    labels_text,
    name_of,
    number_column,
    selector_text,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.apiserver.kinds.edits import fill, replace
from nodeyard.apiserver.kinds.pod_template import template_errors
from nodeyard.apiserver.kinds.validation import (
    at_most_all_errors,
    count_errors,
    is_zero,
    not_negative_errors,
    raw_json,
    selector_json,
    unsupported,
)
from nodeyard.apiserver.kinds.workloads.workload import (
    Workload,
    always_running_errors,
    collision_errors,
    immutable_selector_errors,
    mismatch_errors,
)
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, invalid, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import object_errors

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _with_defaults(obj: Object) -> Object:
    strategy = fill(obj.get("updateStrategy") or {}, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = fill(strategy.get("rollingUpdate") or {}, {"maxUnavailable": 1, "maxSurge": 0})
        strategy = replace(strategy, rollingUpdate=rolling)
    return replace(fill(obj, {"revisionHistoryLimit": 10}), updateStrategy=strategy)


def _rollout_errors(strategy: Object) -> list[FieldError]:
    path, kind, rolling = "spec.updateStrategy", strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        shown = raw_json({"Type": kind, "RollingUpdate": rolling})
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


class DaemonSetStrategy(Workload):
    definition = "io.k8s.api.apps.v1.DaemonSet"
    plural = "daemonsets"
    short_names = ("ds",)
    categories = ("all",)
    defaults = {"io.k8s.api.apps.v1.DaemonSetSpec": _with_defaults}
    columns = (
        NAME,
        number_column("Desired", "Nodes that should run a pod."),
        number_column("Current", "Nodes that run one."),
        number_column("Ready", "Nodes whose pod is ready."),
        number_column("Up-to-date", "Nodes whose pod is of the current template."),
        number_column("Available", "Nodes whose pod has been ready long enough."),
        text_column("Node Selector", "Labels of the nodes that run a pod."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    )
    names_pods = False

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        given = meta.annotations(obj).get(_TEMPLATE_GENERATION, "")
        return _with_template_generation(super().prepare_create(obj, now), int(given) if given.isdecimal() else 1)

    def prepare_update(self, new: Object, old: Object) -> Object:
        kept = super().prepare_update(new, old)
        generation = int(meta.annotations(old).get(_TEMPLATE_GENERATION, "0"))
        changed = new["spec"].get("template") != old["spec"].get("template")
        return _with_template_generation(kept, generation + changed)

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = spec_of(obj)
        selector = spec.get("selector")
        errors = object_errors(selector, "spec.selector")
        if not errors:
            errors += mismatch_errors(spec)
        if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(invalid("spec.selector", selector_json(selector), "empty selector is invalid for daemonset"))
        errors += template_errors(spec.get("template") or {}, "spec.template")
        errors += always_running_errors(spec, "DaemonSet")
        errors += not_negative_errors("spec", spec, "minReadySeconds")
        errors += _rollout_errors(spec.get("updateStrategy") or {})
        return errors + not_negative_errors("spec", spec, "revisionHistoryLimit")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable_selector_errors(new, old) + self.validate_create(new)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        counted = (
            "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
            "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
        )  # fmt: skip
        return not_negative_errors("status", status_of(new), *counted) + collision_errors(new, old)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec, status = spec_of(obj), status_of(obj)
        template = spec.get("template") or {}
        return [
            name_of(obj),
            status.get("desiredNumberScheduled", 0),
            status.get("currentNumberScheduled", 0),
            status.get("numberReady", 0),
            status.get("updatedNumberScheduled", 0),
            status.get("numberAvailable", 0),
            labels_text((template.get("spec") or {}).get("nodeSelector")),
            age_of(obj, now),
            *container_cells(template),
            selector_text(spec.get("selector")),
        ]


def _with_template_generation(obj: Object, generation: int) -> Object:
    """Set the annotation that counted templates before metadata.generation existed, and still does."""
    if meta.annotations(obj).get(_TEMPLATE_GENERATION) == str(generation):
        return obj
    annotations = {**meta.annotations(obj), _TEMPLATE_GENERATION: str(generation)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
