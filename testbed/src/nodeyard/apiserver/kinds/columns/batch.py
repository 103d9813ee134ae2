"""Tables of Jobs and CronJobs."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import (
    AGE,
    CONTAINERS,
    NAME,
    NONE,
    SELECTOR,
    Printer,
    age_of,
    container_cells,
    name_of,
    number_column,
    selector_text,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.apiserver.resources import Column
from nodeyard.kube import ages, meta
from nodeyard.kube.json import Json, Object
from nodeyard.kube.timestamps import parse_rfc3339

_JOB_STATES = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def job_cells(obj: Object, now: datetime) -> list[Json]:
    wanted = spec_of(obj)
    return [
        name_of(obj),
        _job_state(obj),
        _completions(obj),
        _duration(obj, now),
        age_of(obj, now),
        *container_cells(wanted.get("template")),
        selector_text(wanted.get("selector")),
    ]


def _job_state(obj: Object) -> str:
    true = {
        condition.get("type")
        for condition in status_of(obj).get("conditions") or ()
        if condition.get("status") == "True"
    }
    for state in _JOB_STATES[:2]:
        if state in true:
            return state
    if meta.is_deleting(obj):
        return "Terminating"
    return next((state for state in _JOB_STATES[2:] if state in true), "Running")


def _completions(obj: Object) -> str:
    succeeded = status_of(obj).get("succeeded", 0)
    if spec_of(obj).get("completions") is not None:
        return f"{succeeded}/{spec_of(obj)['completions']}"
    parallelism = spec_of(obj).get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: Object, now: datetime) -> str:
    started, ended = status_of(obj).get("startTime"), status_of(obj).get("completionTime")
    if not started:
        return ""
    return ages.human_duration((parse_rfc3339(ended) if ended else now) - parse_rfc3339(started))


def cron_job_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec_of(obj), status_of(obj)
    template = (wanted.get("jobTemplate") or {}).get("spec") or {}
    last = found.get("lastScheduleTime")
    suspend = wanted.get("suspend")
    return [
        name_of(obj),
        wanted.get("schedule", ""),
        wanted.get("timeZone") or NONE,
        "<unset>" if suspend is None else str(suspend),
        len(found.get("active") or ()),
        ages.age(last, now) if last else NONE,
        age_of(obj, now),
        *container_cells(template.get("template")),
        selector_text(template.get("selector")),
    ]


JOB = Printer(
    (
        NAME,
        text_column("Status", "How far the job is."),
        text_column("Completions", "Pods that succeeded, of those needed."),
        text_column("Duration", "How long it took, or has taken so far."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    job_cells,
)
CRON_JOB = Printer(
    (
        NAME,
        text_column("Schedule", "When it runs, in cron's notation."),
        text_column("Timezone", "The time zone of the schedule."),
        Column("Suspend", type="boolean", description="Whether it is held."),
        number_column("Active", "Jobs that run now."),
        text_column("Last Schedule", "Time since it ran last."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    cron_job_cells,
)
