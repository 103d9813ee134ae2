"""What runs pods: apps and batch."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from nodeyard.apiserver.kinds.columns import workloads as columns
from nodeyard.apiserver.kinds.strategies.base import BuiltIn, Paths, WithStatus, keep_metadata, reader
from nodeyard.apiserver.kinds.validation import jobs, workloads
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults

_NAME_ADVICE = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended: "
)
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_JOB_NAME = ("job-name", "batch.kubernetes.io/job-name")
_CONTROLLER_UID = ("controller-uid", "batch.kubernetes.io/controller-uid")

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
    printer = columns.REPLICA_SET
    create_errors = workloads.replica_set_errors
    update_errors = workloads.replica_set_update_errors
    status_errors = workloads.replica_set_status_errors


class StatefulSetStrategy(Workload):
    definition = "io.k8s.api.apps.v1.StatefulSet"
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
    printer = columns.CONTROLLER_REVISION

    def validate_create(self, obj: Object) -> list[FieldError]:
        return workloads.revision_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return workloads.revision_update_errors(new, old)


class JobStrategy(Workload):
    definition = "io.k8s.api.batch.v1.Job"
    printer = columns.JOB
    create_errors = jobs.job_errors
    update_errors = jobs.job_update_errors
    status_errors = jobs.job_status_errors
    fields = {"status.successful": lambda obj: reader("status", "succeeded")(obj) or "0"}

    def unknown_field_label(self, label: str) -> str:
        return f'field label "{label}" not supported for Job'

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        created = super().prepare_create(obj, now)
        spec, metadata = created["spec"], created["metadata"]
        if spec.get("manualSelector"):
            return created
        template = spec.get("template") or {}
        wanted = _with_selector(spec, metadata)
        # A job without labels of its own has its template's, generated ones included; defaulting put the very same
        # labels there, where the template had any.
        own = metadata.get("labels")
        if not own or own is (template.get("metadata") or {}).get("labels"):
            metadata = {**metadata, "labels": wanted["template"]["metadata"]["labels"]}
        return {**created, "metadata": metadata, "spec": wanted}


def _with_selector(spec: Object, metadata: Object) -> Object:
    """A selector that only this job's pods match, and the labels that make them match it."""
    template = spec.get("template") or {}
    given = template.get("metadata") or {}
    generated = dict.fromkeys(_JOB_NAME, metadata.get("name", "")) | dict.fromkeys(_CONTROLLER_UID, metadata["uid"])
    labels = {**generated, **(given.get("labels") or {})}
    selector = spec.get("selector") or {}
    matched = {_CONTROLLER_UID[1]: metadata["uid"], **(selector.get("matchLabels") or {})}
    return {
        **spec,
        "template": {**template, "metadata": {**given, "labels": labels}},
        "selector": {**selector, "matchLabels": matched},
    }


class CronJobStrategy(Workload):
    definition = "io.k8s.api.batch.v1.CronJob"
    printer = columns.CRON_JOB
    create_errors = jobs.cron_job_errors
    update_errors = jobs.cron_job_update_errors
    status_errors = jobs.cron_job_status_errors
