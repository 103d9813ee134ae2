"""Events: lenient in the core group, where they are old, and strict in their own."""

from __future__ import annotations

from nodeyard.apiserver.kinds.validation import IMMUTABLE, faults_at
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, invalid, required
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults

_WORDS_MAX = 128
_NOTE_MAX = 1024
_TYPES = ("Normal", "Warning")
# The server names fields as they are called in the core group, whatever the request calls them.
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


def core_errors(obj: Object) -> list[FieldError]:
    return _shared_errors(
        obj,
        obj.get("involvedObject") or {},
        "reportingComponent",
        obj.get("reportingComponent", ""),
        obj.get("message", ""),
    )


def errors(obj: Object) -> list[FieldError]:
    found = _shared_errors(
        obj, obj.get("regarding") or {}, "reportingController", obj.get("reportingController", ""), obj.get("note", "")
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


def update_errors(new: Object, old: Object) -> list[FieldError]:
    found = _shared_errors(
        new, new.get("regarding") or {}, "reportingController", new.get("reportingController", ""), new.get("note", "")
    )
    if new.get("series") != old.get("series"):
        found += _series_errors(new.get("series"))
    changed = (field for field in _FIXED if new.get(field) != old.get(field))
    return found + [invalid(_FIXED[field], new.get(field), IMMUTABLE) for field in changed]


def _shared_errors(obj: Object, about: Object, field: str, controller: str, note: str) -> list[FieldError]:
    namespace, own = about.get("namespace", ""), meta.namespace(obj)
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
        elif len(value) > _WORDS_MAX:
            found.append(invalid(name, "", f"can have at most {_WORDS_MAX} characters"))
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
