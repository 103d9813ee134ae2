"""Jobs and CronJobs."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import batch as columns
from nodeyard.apiserver.kinds.strategies.workloads import Workload
from nodeyard.apiserver.kinds.strategy import reader
from nodeyard.apiserver.kinds.workloads import job as jobs
from nodeyard.kube.json import Object

_JOB_NAME = ("job-name", "batch.kubernetes.io/job-name")
_CONTROLLER_UID = ("controller-uid", "batch.kubernetes.io/controller-uid")


class JobStrategy(Workload):
    definition = "io.k8s.api.batch.v1.Job"
    plural = "jobs"
    categories = ("all",)
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
    plural = "cronjobs"
    short_names = ("cj",)
    categories = ("all",)
    printer = columns.CRON_JOB
    create_errors = jobs.cron_job_errors
    update_errors = jobs.cron_job_update_errors
    status_errors = jobs.cron_job_status_errors
