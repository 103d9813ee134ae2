"""ReplicaSets."""

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
    number_column,
    selector_text,
    spec_of,
    status_of,
)
from nodeyard.apiserver.kinds.edits import filler
from nodeyard.apiserver.kinds.validation import not_negative_errors
from nodeyard.apiserver.kinds.workloads.workload import (
    REPLICAS,
    Workload,
    available_errors,
    immutable_selector_errors,
    replica_template_errors,
    selector_errors,
    status_count_errors,
)
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object


class ReplicaSetStrategy(Workload):
    definition = "io.k8s.api.apps.v1.ReplicaSet"
    plural = "replicasets"
    short_names = ("rs",)
    categories = ("all",)
    scale = REPLICAS
    defaults = {"io.k8s.api.apps.v1.ReplicaSetSpec": filler({"replicas": 1})}
    columns = (
        NAME,
        number_column("Desired", "Desired number of pods."),
        number_column("Current", "Existing pods."),
        number_column("Ready", "Pods that are ready."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    )

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = spec_of(obj)
        errors = not_negative_errors("spec", spec, "replicas", "minReadySeconds")
        return errors + selector_errors(spec, "deployment") + replica_template_errors(spec)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new) + immutable_selector_errors(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = status_of(new)
        counted = (
            "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
            "terminatingReplicas",
        )  # fmt: skip
        errors = status_count_errors(status, counted, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"))
        return errors + available_errors(status)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec, status = spec_of(obj), status_of(obj)
        return [
            name_of(obj),
            spec.get("replicas", 0),
            status.get("replicas", 0),
            status.get("readyReplicas", 0),
            age_of(obj, now),
            *container_cells(spec.get("template")),
            selector_text(spec.get("selector")),
        ]
