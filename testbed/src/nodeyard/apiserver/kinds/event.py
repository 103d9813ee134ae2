"""Events: of the core group, validated leniently, and of events.k8s.io, validated strictly."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver import ages
from nodeyard.apiserver.kinds.columns import name_of, text_column
from nodeyard.apiserver.kinds.strategy import BuiltIn, reader
from nodeyard.apiserver.kinds.validation import IMMUTABLE, faults_at, path_segment_faults
from nodeyard.apiserver.resources import Column
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, invalid, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import qualified_name_faults

_NAME_MAX = 128
_NOTE_MAX = 1024
_TYPES = ("Normal", "Warning")
# Errors name fields of the core group, also in events.k8s.io.
_UNSET = {
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "deprecatedSource": "source",
}
_FIXED = {
    "regarding": "involvedObject",
    "reason": "reason",
    "note": "message",
    **_UNSET,
    "type": "type",
    "eventTime": "eventTime",
    "action": "action",
    "related": "related",
    "reportingController": "reportingController",
    "reportingInstance": "reportingInstance",
}
_COLUMNS = (
    text_column("Last Seen", "Time since it happened last."),
    text_column("Type", "Normal or Warning."),
    text_column("Reason", "Why it happened, in a word."),
    text_column("Object", "What it happened to."),
    text_column("Subobject", "Which part of it.", wide=True),
    text_column("Source", "Who saw it.", wide=True),
    text_column("Message", "What happened."),
    text_column("First Seen", "Time since it happened first.", wide=True),
    text_column("Count", "How often it happened.", wide=True),
    Column("Name", format="name", description="Name of the event.", priority=1),
)
_REFERENCE_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _shared_errors(obj: Object, involved: Object, field: str, controller: str, note: str) -> list[FieldError]:
    namespace, own = involved.get("namespace", ""), meta.namespace(obj)
    if obj.get("eventTime"):
        is_misplaced = not namespace and own not in ("default", "kube-system")
    else:
        is_misplaced = own != "default" if not namespace else own != namespace
    found: list[FieldError] = []
    if is_misplaced:
        found.append(invalid("involvedObject.namespace", namespace, "does not match event.namespace"))
    return found + (_new_errors(obj, controller, field, note) if obj.get("eventTime") else [])


def _new_errors(obj: Object, controller: str, field: str, note: str) -> list[FieldError]:
    found: list[FieldError] = []
    if not controller:
        found.append(required(field))
    found += faults_at(field, controller, qualified_name_faults)
    for name in ("reportingInstance", "action", "reason"):
        value = obj.get(name, "")
        if not value:
            found.append(required(name))
        elif len(value) > _NAME_MAX:
            found.append(invalid(name, "", f"can have at most {_NAME_MAX} characters"))
    if len(note) > _NOTE_MAX:
        found.append(invalid("message", "", f"can have at most {_NOTE_MAX} characters"))
    return found


def _series_errors(series: Object | None) -> list[FieldError]:
    if series is None:
        return []
    found: list[FieldError] = []
    if series.get("count", 0) < 2:
        found.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        found.append(required("series.lastObservedTime"))
    return found


def _cells(
    obj: Object,
    now: datetime,
    *,
    involved: Object,
    message: str,
    first: str | None,
    last: str | None,
    count: int,
    seen_by: tuple[str, str],
) -> list[Json]:
    first_seen = ages.age(first or obj.get("eventTime"), now)
    last_seen = ages.age(last, now) if last else first_seen
    series = obj.get("series")
    if series is not None:
        last_seen, count = ages.age(series.get("lastObservedTime"), now), series.get("count", 0)
    kind = involved.get("kind", "").lower()
    return [
        last_seen,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{involved['name']}" if involved.get("name") else kind,
        involved.get("fieldPath", ""),
        ", ".join(part for part in seen_by if part),
        message.strip(),
        first_seen,
        count or 1,
        name_of(obj),
    ]


class CoreEventStrategy(BuiltIn):
    """Takes any name that fits into a URL, as it did before names were validated."""

    definition = "io.k8s.api.core.v1.Event"
    plural = "events"
    short_names = ("ev",)
    columns = _COLUMNS
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {
        **{f"involvedObject.{field}": reader("involvedObject", field) for field in _REFERENCE_FIELDS},
        "reason": reader("reason"),
        "reportingComponent": reader("reportingComponent"),
        "source": lambda obj: reader("source", "component")(obj) or reader("reportingComponent")(obj),
        "type": reader("type"),
    }

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return _shared_errors(
            obj,
            obj.get("involvedObject") or {},
            "reportingComponent",
            obj.get("reportingComponent", ""),
            obj.get("message", ""),
        )

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        source = obj.get("source") or {}
        return _cells(
            obj,
            now,
            involved=obj.get("involvedObject") or {},
            message=obj.get("message", ""),
            first=obj.get("firstTimestamp"),
            last=obj.get("lastTimestamp"),
            count=obj.get("count") or 0,
            seen_by=(
                source.get("component") or obj.get("reportingComponent") or "",
                source.get("host") or obj.get("reportingInstance") or "",
            ),
        )


class EventStrategy(BuiltIn):
    definition = "io.k8s.api.events.v1.Event"
    plural = "events"
    short_names = ("ev",)
    columns = _COLUMNS
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {
        **{f"regarding.{field}": reader("regarding", field) for field in _REFERENCE_FIELDS},
        "reason": reader("reason"),
        "reportingController": reader("reportingController"),
        "type": reader("type"),
    }

    def validate_create(self, obj: Object) -> list[FieldError]:
        found = _shared_errors(
            obj,
            obj.get("regarding") or {},
            "reportingController",
            obj.get("reportingController", ""),
            obj.get("note", ""),
        )
        found += _series_errors(obj.get("series"))
        if not obj.get("eventTime"):
            found.append(required("eventTime"))
        if obj.get("type", "") not in _TYPES:
            found.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
        for field, core in _UNSET.items():
            if obj.get(field):
                found.append(invalid(core, "", "needs to be unset"))
        return found

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        found = _shared_errors(
            new,
            new.get("regarding") or {},
            "reportingController",
            new.get("reportingController", ""),
            new.get("note", ""),
        )
        if new.get("series") != old.get("series"):
            found += _series_errors(new.get("series"))
        changed = (field for field in _FIXED if new.get(field) != old.get(field))
        return found + [invalid(_FIXED[field], new.get(field), IMMUTABLE) for field in changed]

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        source = obj.get("deprecatedSource") or {}
        return _cells(
            obj,
            now,
            involved=obj.get("regarding") or {},
            message=obj.get("note", ""),
            first=obj.get("deprecatedFirstTimestamp"),
            last=obj.get("deprecatedLastTimestamp"),
            count=obj.get("deprecatedCount") or 0,
            seen_by=(
                source.get("component") or obj.get("reportingController") or "",
                source.get("host") or obj.get("reportingInstance") or "",
            ),
        )
