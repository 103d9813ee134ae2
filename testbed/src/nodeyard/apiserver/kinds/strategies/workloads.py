"""What keeps pods running: Deployments, ReplicaSets, StatefulSets, DaemonSets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from nodeyard.apiserver.kinds.columns import workloads as columns
from nodeyard.apiserver.kinds.edits import keep_metadata
from nodeyard.apiserver.kinds.strategy import BuiltIn, Paths, WithStatus
from nodeyard.apiserver.kinds.workloads import workload as workloads
from nodeyard.apiserver.resources import Scale
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults

_NAME_ADVICE = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended: "
)
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

REPLICAS = Scale(".spec.replicas", ".status.replicas", ".spec.selector")

Create = Callable[[Object], list[FieldError]]
Update = Callable[[Object, Object], list[FieldError]]


class Workload(WithStatus):
    """Makes pods from a template."""

    create_errors: ClassVar[Create]
    update_errors: ClassVar[Update]
    status_errors: ClassVar[Update]
    names_pods: ClassVar[bool] = True
    """Whether its name becomes part of host names, so that one which is no DNS label deserves a warning."""

    def validate_create(self, obj: Object) -> list[FieldError]:
        return type(self).create_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return type(self).update_errors(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return type(self).status_errors(new, old)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        faults = label_faults(meta.name(obj)) if old is None and self.names_pods else []
        return [f"{_NAME_ADVICE}[{' '.join(faults)}]"] if faults else []


class DeploymentStrategy(Workload):
    definition = "io.k8s.api.apps.v1.Deployment"
    plural = "deployments"
    short_names = ("deploy",)
    categories = ("all",)
    scale = REPLICAS
    printer = columns.DEPLOYMENT
    create_errors = workloads.deployment_errors
    update_errors = workloads.deployment_update_errors
    status_errors = workloads.deployment_status_errors

    def reset_fields(self, subresource: str) -> Paths:
        return (("spec",), ("metadata", "labels")) if subresource == "status" else (("status",),)

    def prepare_status(self, new: Object, old: Object) -> Object:
        return keep_metadata(super().prepare_status(new, old), old, "labels")

    def changes_generation(self, new: Object, old: Object) -> bool:
        """Annotations count as well: they say what a rollout was for."""
        return super().changes_generation(new, old) or meta.annotations(new) != meta.annotations(old)


class ReplicaSetStrategy(Workload):
    definition = "io.k8s.api.apps.v1.ReplicaSet"
    plural = "replicasets"
    short_names = ("rs",)
    categories = ("all",)
    scale = REPLICAS
    printer = columns.REPLICA_SET
    create_errors = workloads.replica_set_errors
    update_errors = workloads.replica_set_update_errors
    status_errors = workloads.replica_set_status_errors


class StatefulSetStrategy(Workload):
    definition = "io.k8s.api.apps.v1.StatefulSet"
    plural = "statefulsets"
    short_names = ("sts",)
    categories = ("all",)
    scale = REPLICAS
    printer = columns.STATEFUL_SET
    create_errors = workloads.stateful_set_errors
    update_errors = workloads.stateful_set_update_errors
    status_errors = workloads.stateful_set_status_errors
    names_pods = False

    def validate_name(self, name: str) -> list[str]:
        return label_faults(name)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return _one_at_a_time(super().prepare_create(obj, now))

    def prepare_update(self, new: Object, old: Object) -> Object:
        return _one_at_a_time(super().prepare_update(new, old))


def _one_at_a_time(obj: Object) -> Object:
    """Taking down several pods at once is a feature that is off."""
    strategy = obj["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    if "maxUnavailable" not in rolling:
        return obj
    rolling = {field: value for field, value in rolling.items() if field != "maxUnavailable"}
    return {**obj, "spec": {**obj["spec"], "updateStrategy": {**strategy, "rollingUpdate": rolling}}}


class DaemonSetStrategy(Workload):
    definition = "io.k8s.api.apps.v1.DaemonSet"
    plural = "daemonsets"
    short_names = ("ds",)
    categories = ("all",)
    printer = columns.DAEMON_SET
    create_errors = workloads.daemon_set_errors
    update_errors = workloads.daemon_set_update_errors
    status_errors = workloads.daemon_set_status_errors
    names_pods = False

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        given = meta.annotations(obj).get(_TEMPLATE_GENERATION, "")
        return _with_template_generation(super().prepare_create(obj, now), int(given) if given.isdecimal() else 1)

    def prepare_update(self, new: Object, old: Object) -> Object:
        kept = super().prepare_update(new, old)
        generation = int(meta.annotations(old).get(_TEMPLATE_GENERATION, "0"))
        changed = new["spec"].get("template") != old["spec"].get("template")
        return _with_template_generation(kept, generation + changed)


def _with_template_generation(obj: Object, generation: int) -> Object:
    """Counted before there was metadata.generation, and counted still."""
    if meta.annotations(obj).get(_TEMPLATE_GENERATION) == str(generation):
        return obj
    annotations = {**meta.annotations(obj), _TEMPLATE_GENERATION: str(generation)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


class ControllerRevisionStrategy(BuiltIn):
    definition = "io.k8s.api.apps.v1.ControllerRevision"
    plural = "controllerrevisions"
    printer = columns.CONTROLLER_REVISION

    def validate_create(self, obj: Object) -> list[FieldError]:
        return workloads.revision_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return workloads.revision_update_errors(new, old)
