"""CronJobs."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver import ages
from nodeyard.apiserver.kinds.columns import (
    AGE,
    CONTAINERS,
    NAME,
    NONE,
    SELECTOR,
    age_of,
    container_cells,
    name_of,
    number_column,
    selector_text,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.apiserver.kinds.edits import filler
from nodeyard.apiserver.kinds.validation import not_negative_errors, required_choice_errors, unsupported
from nodeyard.apiserver.kinds.workloads.cron_schedule import is_time_zone, schedule_fault
from nodeyard.apiserver.kinds.workloads.job import job_template_errors
from nodeyard.apiserver.kinds.workloads.workload import Workload
from nodeyard.apiserver.resources import Column
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, invalid, required
from nodeyard.kube.json import Json, Object

_DEFAULTS = {
    "concurrencyPolicy": "Allow",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}
_CRON_NAME_MAX = 52


def _schedule_errors(spec: Object) -> list[FieldError]:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    errors: list[FieldError] = []
    if not schedule:
        errors.append(required("spec.schedule"))
    elif "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid("spec.schedule", schedule, detail))
    elif fault := schedule_fault(schedule):
        errors.append(invalid("spec.schedule", schedule, fault))
    if zone == "":
        errors.append(invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
    elif zone is not None and not is_time_zone(zone):
        errors.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))
    return errors


class CronJobStrategy(Workload):
    definition = "io.k8s.api.batch.v1.CronJob"
    plural = "cronjobs"
    short_names = ("cj",)
    categories = ("all",)
    defaults = {"io.k8s.api.batch.v1.CronJobSpec": filler(_DEFAULTS)}
    columns = (
        NAME,
        text_column("Schedule", "Schedule in cron syntax."),
        text_column("Timezone", "The time zone of the schedule."),
        Column("Suspend", type="boolean", description="Whether it is suspended."),
        number_column("Active", "Jobs that run now."),
        text_column("Last Schedule", "Time since it ran last."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    )

    def validate_create(self, obj: Object) -> list[FieldError]:
        errors = self.validate_update(obj, {})
        name = meta.name(obj)
        if len(name) > _CRON_NAME_MAX:
            errors.append(invalid("metadata.name", name, f"must be no more than {_CRON_NAME_MAX} characters"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec = new.get("spec") or {}
        errors = _schedule_errors(spec) + not_negative_errors("spec", spec, "startingDeadlineSeconds")
        choices = ("Allow", "Forbid", "Replace")
        errors += required_choice_errors("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), *choices)
        template = (spec.get("jobTemplate") or {}).get("spec") or {}
        errors += job_template_errors(template, "spec.jobTemplate.spec")
        if template.get("manualSelector"):
            path = "spec.jobTemplate.spec.manualSelector"
            errors.append(unsupported(path, template["manualSelector"], "nil", "false"))
        return errors + not_negative_errors("spec", spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec, status = spec_of(obj), status_of(obj)
        template = (spec.get("jobTemplate") or {}).get("spec") or {}
        last = status.get("lastScheduleTime")
        suspend = spec.get("suspend")
        return [
            name_of(obj),
            spec.get("schedule", ""),
            spec.get("timeZone") or NONE,
            "<unset>" if suspend is None else str(suspend),
            len(status.get("active") or ()),
            ages.age(last, now) if last else NONE,
            age_of(obj, now),
            *container_cells(template.get("template")),
            selector_text(template.get("selector")),
        ]
