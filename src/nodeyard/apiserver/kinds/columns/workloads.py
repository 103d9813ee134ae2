"""Tables of what runs pods."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns.printer import (
    AGE,
    CONTAINERS,
    NAME,
    NONE,
    SELECTOR,
    Printer,
    age,
    containers,
    labels,
    name,
    number,
    selector,
    spec,
    status,
    text,
)
from nodeyard.apiserver.resources import Column
from nodeyard.kube import ages, meta
from nodeyard.kube.json import Json, Object
from nodeyard.process.clock import parse_time


def deployment_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec(obj), status(obj)
    return [
        name(obj),
        f"{found.get('readyReplicas', 0)}/{wanted.get('replicas', 0)}",
        found.get("updatedReplicas", 0),
        found.get("availableReplicas", 0),
        age(obj, now),
        *containers(wanted.get("template")),
        selector(wanted.get("selector")),
    ]


def replica_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec(obj), status(obj)
    return [
        name(obj),
        wanted.get("replicas", 0),
        found.get("replicas", 0),
        found.get("readyReplicas", 0),
        age(obj, now),
        *containers(wanted.get("template")),
        selector(wanted.get("selector")),
    ]


def stateful_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted = spec(obj)
    ready = f"{status(obj).get('readyReplicas', 0)}/{wanted.get('replicas', 0)}"
    return [name(obj), ready, age(obj, now), *containers(wanted.get("template"))]


def daemon_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec(obj), status(obj)
    template = wanted.get("template") or {}
    return [
        name(obj),
        found.get("desiredNumberScheduled", 0),
        found.get("currentNumberScheduled", 0),
        found.get("numberReady", 0),
        found.get("updatedNumberScheduled", 0),
        found.get("numberAvailable", 0),
        labels((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *containers(template),
        selector(wanted.get("selector")),
    ]


def revision_cells(obj: Object, now: datetime) -> list[Json]:
    owner = meta.controller_of(obj)
    controller = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        controller = f"{kind.lower()}/{owner['name']}"
    return [name(obj), controller, obj.get("revision", 0), age(obj, now)]


_JOB_STATES = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def job_cells(obj: Object, now: datetime) -> list[Json]:
    wanted = spec(obj)
    return [
        name(obj),
        _job_state(obj),
        _completions(obj),
        _duration(obj, now),
        age(obj, now),
        *containers(wanted.get("template")),
        selector(wanted.get("selector")),
    ]


def _job_state(obj: Object) -> str:
    true = {
        condition.get("type") for condition in status(obj).get("conditions") or () if condition.get("status") == "True"
    }
    for state in _JOB_STATES[:2]:
        if state in true:
            return state
    if meta.is_deleting(obj):
        return "Terminating"
    return next((state for state in _JOB_STATES[2:] if state in true), "Running")


def _completions(obj: Object) -> str:
    succeeded = status(obj).get("succeeded", 0)
    if spec(obj).get("completions") is not None:
        return f"{succeeded}/{spec(obj)['completions']}"
    parallelism = spec(obj).get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: Object, now: datetime) -> str:
    started, ended = status(obj).get("startTime"), status(obj).get("completionTime")
    if not started:
        return ""
    return ages.human_duration((parse_time(ended) if ended else now) - parse_time(started))


def cron_job_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec(obj), status(obj)
    template = (wanted.get("jobTemplate") or {}).get("spec") or {}
    last = found.get("lastScheduleTime")
    suspend = wanted.get("suspend")
    return [
        name(obj),
        wanted.get("schedule", ""),
        wanted.get("timeZone") or NONE,
        "<unset>" if suspend is None else str(suspend),
        len(found.get("active") or ()),
        ages.age(last, now) if last else NONE,
        age(obj, now),
        *containers(template.get("template")),
        selector(template.get("selector")),
    ]


DEPLOYMENT = Printer(
    (
        NAME,
        text("Ready", "Ready pods, of those wanted."),
        text("Up-to-date", "Pods of the current template."),
        text("Available", "Pods that have been ready long enough."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    deployment_cells,
)
REPLICA_SET = Printer(
    (
        NAME,
        number("Desired", "Pods wanted."),
        number("Current", "Pods there are."),
        number("Ready", "Pods that are ready."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    replica_set_cells,
)
STATEFUL_SET = Printer((NAME, text("Ready", "Ready pods, of those wanted."), AGE, *CONTAINERS), stateful_set_cells)
DAEMON_SET = Printer(
    (
        NAME,
        number("Desired", "Nodes that should run a pod."),
        number("Current", "Nodes that run one."),
        number("Ready", "Nodes whose pod is ready."),
        number("Up-to-date", "Nodes whose pod is of the current template."),
        number("Available", "Nodes whose pod has been ready long enough."),
        text("Node Selector", "Which nodes are meant."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    daemon_set_cells,
)
CONTROLLER_REVISION = Printer(
    (NAME, text("Controller", "Whose revision it is."), text("Revision", "Its number."), AGE), revision_cells
)
JOB = Printer(
    (
        NAME,
        text("Status", "How far the job is."),
        text("Completions", "Pods that succeeded, of those needed."),
        text("Duration", "How long it took, or has taken so far."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    job_cells,
)
CRON_JOB = Printer(
    (
        NAME,
        text("Schedule", "When it runs, in cron's notation."),
        text("Timezone", "The time zone of the schedule."),
        Column("Suspend", type="boolean", description="Whether it is held."),
        number("Active", "Jobs that run now."),
        text("Last Schedule", "Time since it ran last."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    cron_job_cells,
)
