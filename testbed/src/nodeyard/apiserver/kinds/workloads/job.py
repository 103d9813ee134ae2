"""Jobs and CronJobs."""

from __future__ import annotations

from nodeyard.apiserver.kinds.pod_template import template_errors
from nodeyard.apiserver.kinds.validation import (
    IMMUTABLE,
    choice_errors,
    not_negative_errors,
    required_choice_errors,
    shown_selector,
    unsupported,
    written,
)
from nodeyard.apiserver.kinds.workloads.cron_schedule import is_time_zone, schedule_fault
from nodeyard.apiserver.kinds.workloads.workload import mismatch_errors
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, invalid, key, required
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import SelectorError, object_errors

_COUNTED = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_CRON_NAME_MAX = 52


def job_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = _generated_errors(obj, spec) if not spec.get("manualSelector") else []
    return errors + _job_spec_errors(spec)


def _generated_errors(obj: Object, spec: Object) -> list[FieldError]:
    """The selector and labels that the server makes, which nobody else may set otherwise."""
    if spec.get("selector") is None:
        return []
    uid, name = meta.uid(obj), meta.name(obj)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    errors: list[FieldError] = []
    for generated, wanted in [(label, uid) for label in _UID_LABELS] + [(label, name) for label in _NAME_LABELS]:
        if labels.get(generated, wanted) != wanted:
            shown = written(dict(sorted(labels.items())))
            path = key("spec.template.metadata.labels", generated)
            errors.append(invalid(path, shown, f"must be '{wanted}'"))
    selector = spec["selector"]
    if not errors and (selector.get("matchLabels") or {}) not in ({label: uid} for label in _UID_LABELS):
        errors.append(invalid("spec.selector", shown_selector(selector), "`selector` not auto-generated"))
    return errors


def _job_spec_errors(spec: Object) -> list[FieldError]:
    errors = _common_errors(spec, "spec")
    if spec.get("selector") is None:
        errors.insert(0, required("spec.selector"))
    else:
        errors = object_errors(spec["selector"], "spec.selector") + errors
    try:
        return errors + mismatch_errors(spec)
    except SelectorError as error:
        return [*errors, invalid("spec.selector", shown_selector(spec["selector"]), str(error))]


def _common_errors(spec: Object, path: str) -> list[FieldError]:
    errors = not_negative_errors(path, spec, *_COUNTED)
    mode = spec.get("completionMode")
    if mode is not None:
        errors += choice_errors(f"{path}.completionMode", mode, "NonIndexed", "Indexed")
        if mode == "Indexed" and spec.get("completions") is None:
            errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        choices = ("Failed", "TerminatingOrFailed")
        errors += choice_errors(f"{path}.podReplacementPolicy", replacement, *choices)
    template = spec.get("template") or {}
    errors += template_errors(template, f"{path}.template")
    policy = (template.get("spec") or {}).get("restartPolicy", "")
    where = f"{path}.template.spec.restartPolicy"
    if policy in ("", "Always"):
        errors.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(unsupported(where, policy, "OnFailure", "Never"))
    return errors


def job_update_errors(new: Object, old: Object) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = job_errors(new)
    if spec.get("completions") != before.get("completions") and not _is_elastic(spec, before):
        errors.append(invalid("spec.completions", spec.get("completions"), IMMUTABLE))
    if spec.get("selector") != before.get("selector"):
        errors.append(invalid("spec.selector", shown_selector(spec.get("selector")), IMMUTABLE))
    if not _is_same_template(spec, before, is_suspended=_may_still_move(old)):
        errors.append(invalid("spec.template", spec.get("template"), IMMUTABLE))
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if spec.get(field) != before.get(field):
            errors.append(invalid(f"spec.{field}", spec.get(field), IMMUTABLE))
    return errors


def _is_elastic(spec: Object, before: Object) -> bool:
    """An indexed job may be made wider or narrower, completions and parallelism together."""
    same = spec.get("completions") == spec.get("parallelism") is not None
    return before.get("completionMode") == "Indexed" and before.get("completions") is not None and same


def _may_still_move(old: Object) -> bool:
    spec, status = old.get("spec") or {}, old.get("status") or {}
    return bool(spec.get("suspend")) and not status.get("startTime") and not status.get("active")


_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "schedulingGates")


def _is_same_template(spec: Object, before: Object, *, is_suspended: bool) -> bool:
    """While a job has never run, where its pods go may still be changed."""
    template, earlier = spec.get("template") or {}, before.get("template") or {}
    if template == earlier or not is_suspended:
        return bool(template == earlier)
    return _without_placement(template) == _without_placement(earlier)


def _without_placement(template: Object) -> Object:
    pod = {field: value for field, value in (template.get("spec") or {}).items() if field not in _PLACEMENT}
    metadata = template.get("metadata") or {}
    kept = {field: value for field, value in metadata.items() if field not in ("labels", "annotations")}
    return {**template, "metadata": kept, "spec": pod}


def job_status_errors(new: Object, old: Object) -> list[FieldError]:
    return not_negative_errors(
        "status", new.get("status") or {}, "active", "succeeded", "failed", "ready", "terminating"
    )


def cron_job_errors(obj: Object) -> list[FieldError]:
    errors = cron_job_update_errors(obj, {})
    name = meta.name(obj)
    if len(name) > _CRON_NAME_MAX:
        errors.append(invalid("metadata.name", name, f"must be no more than {_CRON_NAME_MAX} characters"))
    return errors


def cron_job_update_errors(new: Object, old: Object) -> list[FieldError]:
    spec = new.get("spec") or {}
    errors = _schedule_errors(spec) + not_negative_errors("spec", spec, "startingDeadlineSeconds")
    choices = ("Allow", "Forbid", "Replace")
    errors += required_choice_errors("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), *choices)
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    errors += _common_errors(template, "spec.jobTemplate.spec")
    if template.get("manualSelector"):
        path = "spec.jobTemplate.spec.manualSelector"
        errors.append(unsupported(path, template["manualSelector"], "nil", "false"))
    return errors + not_negative_errors("spec", spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


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


def cron_job_status_errors(new: Object, old: Object) -> list[FieldError]:
    return []
