"""Jobs. The server generates their selector and the labels that match it."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver import ages
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
from nodeyard.apiserver.kinds.edits import fill, filler, replace
from nodeyard.apiserver.kinds.pod_template import template_errors
from nodeyard.apiserver.kinds.strategy import reader
from nodeyard.apiserver.kinds.validation import (
    IMMUTABLE,
    choice_errors,
    not_negative_errors,
    raw_json,
    selector_json,
    unsupported,
)
from nodeyard.apiserver.kinds.workloads.workload import Workload, mismatch_errors
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, invalid, key, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import SelectorError, object_errors
from nodeyard.kube.timestamps import parse_rfc3339

_MAX_INT32 = 2**31 - 1
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
_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "schedulingGates")
_JOB_STATES = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _with_defaults(obj: Object) -> Object:
    """Defaults of a Job itself. The template of a CronJob gets them when it becomes a Job."""
    spec = obj["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec = {**spec, "completions": 1}
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec = fill(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": _MAX_INT32 if per_index else 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
            "manualSelector": False,
        },
    )
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = obj.get("metadata") or {}
    if labels and not metadata.get("labels"):
        return {**obj, "metadata": {**metadata, "labels": labels}, "spec": spec}
    return replace(obj, spec=spec)


def _generated_errors(obj: Object, spec: Object) -> list[FieldError]:
    """Check the generated selector and labels, which nobody may set to other values."""
    if spec.get("selector") is None:
        return []
    uid, name = meta.uid(obj), meta.name(obj)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    errors: list[FieldError] = []
    for generated, wanted in [(label, uid) for label in _UID_LABELS] + [(label, name) for label in _NAME_LABELS]:
        if labels.get(generated, wanted) != wanted:
            shown = raw_json(dict(sorted(labels.items())))
            path = key("spec.template.metadata.labels", generated)
            errors.append(invalid(path, shown, f"must be '{wanted}'"))
    selector = spec["selector"]
    if not errors and (selector.get("matchLabels") or {}) not in ({label: uid} for label in _UID_LABELS):
        errors.append(invalid("spec.selector", selector_json(selector), "`selector` not auto-generated"))
    return errors


def _job_spec_errors(spec: Object) -> list[FieldError]:
    errors = job_template_errors(spec, "spec")
    if spec.get("selector") is None:
        errors.insert(0, required("spec.selector"))
    else:
        errors = object_errors(spec["selector"], "spec.selector") + errors
    try:
        return errors + mismatch_errors(spec)
    except SelectorError as error:
        return [*errors, invalid("spec.selector", selector_json(spec["selector"]), str(error))]


def job_template_errors(spec: Object, path: str) -> list[FieldError]:
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


def _is_elastic(spec: Object, before: Object) -> bool:
    """Indexed jobs can be scaled: completions and parallelism together."""
    same = spec.get("completions") == spec.get("parallelism") is not None
    return before.get("completionMode") == "Indexed" and before.get("completions") is not None and same


def _can_change_placement(old: Object) -> bool:
    spec, status = old.get("spec") or {}, old.get("status") or {}
    return bool(spec.get("suspend")) and not status.get("startTime") and not status.get("active")


def _is_same_template(spec: Object, before: Object, *, can_change_placement: bool) -> bool:
    """Compare templates; a suspended job that never ran can still change its scheduling directives."""
    template, earlier = spec.get("template") or {}, before.get("template") or {}
    if template == earlier or not can_change_placement:
        return bool(template == earlier)
    return _without_placement(template) == _without_placement(earlier)


def _without_placement(template: Object) -> Object:
    pod = {field: value for field, value in (template.get("spec") or {}).items() if field not in _PLACEMENT}
    metadata = template.get("metadata") or {}
    kept = {field: value for field, value in metadata.items() if field not in ("labels", "annotations")}
    return {**template, "metadata": kept, "spec": pod}


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


class JobStrategy(Workload):
    definition = "io.k8s.api.batch.v1.Job"
    plural = "jobs"
    categories = ("all",)
    defaults = {
        "io.k8s.api.batch.v1.Job": _with_defaults,
        "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern": filler({"status": "True"}),
    }
    columns = (
        NAME,
        text_column("Status", "State of the job."),
        text_column("Completions", "Succeeded pods of the required number."),
        text_column("Duration", "How long it took, or has taken so far."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    )
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
        # A job without labels gets those of its template, including the generated ones. Defaulting may have set the
        # template's labels on it already.
        own = metadata.get("labels")
        if not own or own is (template.get("metadata") or {}).get("labels"):
            metadata = {**metadata, "labels": wanted["template"]["metadata"]["labels"]}
        return {**created, "metadata": metadata, "spec": wanted}

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = _generated_errors(obj, spec) if not spec.get("manualSelector") else []
        return errors + _job_spec_errors(spec)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = self.validate_create(new)
        if spec.get("completions") != before.get("completions") and not _is_elastic(spec, before):
            errors.append(invalid("spec.completions", spec.get("completions"), IMMUTABLE))
        if spec.get("selector") != before.get("selector"):
            errors.append(invalid("spec.selector", selector_json(spec.get("selector")), IMMUTABLE))
        if not _is_same_template(spec, before, can_change_placement=_can_change_placement(old)):
            errors.append(invalid("spec.template", spec.get("template"), IMMUTABLE))
        for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
            if spec.get(field) != before.get(field):
                errors.append(invalid(f"spec.{field}", spec.get(field), IMMUTABLE))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        counted = ("active", "succeeded", "failed", "ready", "terminating")
        return not_negative_errors("status", new.get("status") or {}, *counted)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec = spec_of(obj)
        return [
            name_of(obj),
            _job_state(obj),
            _completions(obj),
            _duration(obj, now),
            age_of(obj, now),
            *container_cells(spec.get("template")),
            selector_text(spec.get("selector")),
        ]


def _with_selector(spec: Object, metadata: Object) -> Object:
    """Generate a selector that only this job's pods match, and their labels."""
    template = spec.get("template") or {}
    given = template.get("metadata") or {}
    generated = dict.fromkeys(_NAME_LABELS, metadata.get("name", "")) | dict.fromkeys(_UID_LABELS, metadata["uid"])
    labels = {**generated, **(given.get("labels") or {})}
    selector = spec.get("selector") or {}
    matched = {_UID_LABELS[1]: metadata["uid"], **(selector.get("matchLabels") or {})}
    return {
        **spec,
        "template": {**template, "metadata": {**given, "labels": labels}},
        "selector": {**selector, "matchLabels": matched},
    }
