"""Validates a custom resource against its schema, with the server's messages in the server's order.

Values come first, with ratcheting on updates; then embedded resources; then lists of type set and map. CEL rules come
last, and are skipped if a fault would make their result meaningless (`blocked_rules_error`).
"""

from __future__ import annotations

from nodeyard.kube.fields import FieldError, FieldErrorType
from nodeyard.kube.json import Json, Object
from nodeyard.schema.any_one_all_of import run_checks
from nodeyard.schema.checks import table_of
from nodeyard.schema.embedded import embedded_faults
from nodeyard.schema.faults import NO_PATH, field_errors
from nodeyard.schema.listtypes import list_faults
from nodeyard.schema.model import UNSET, Schema
from nodeyard.schema.ratcheting import Pair, is_tolerated

_BLOCKING = {
    FieldErrorType.NOT_SUPPORTED,
    FieldErrorType.REQUIRED,
    FieldErrorType.TOO_LONG,
    FieldErrorType.TOO_MANY,
    FieldErrorType.TYPE_INVALID,
}


def validate(schema: Schema, obj: Object, old: Object | None = None) -> list[FieldError]:
    """Validate an object on create, or on update if `old` is given."""
    faults = value_faults(schema, obj, UNSET if old is None else old)
    faults += embedded_faults(schema, obj)
    faults += _list_faults(schema, obj, old)
    return faults


def validate_status(schema: Schema, obj: Object, old: Object) -> list[FieldError]:
    """Validate a write to the status subresource, where only status is validated."""
    status = schema.properties.get("status")
    faults: list[FieldError] = []
    if status is not None and "status" in obj:
        faults += value_faults(status, obj["status"], old.get("status", UNSET), "status")
    return faults + _list_faults(schema, obj, old)


def value_faults(schema: Schema, value: Json, old: Json = UNSET, path: str = "") -> list[FieldError]:
    """Validate types, limits, patterns, formats and branches; not list keys and embedded resources."""
    faults = run_checks(table_of(schema), value)
    if faults and old is not UNSET:
        pair = Pair(schema, value, old)
        faults = [fault for fault in faults if not is_tolerated(pair, fault)]
    return field_errors(faults, path) if faults else []


def blocked_rules_error(faults: list[FieldError]) -> FieldError | None:
    """Return the error that replaces the CEL rules if one of these faults blocks them, else None."""
    if not any(fault.type in _BLOCKING for fault in faults):
        return None
    message = (
        "some validation rules were not checked because the object was invalid; correct the existing errors to "
        "complete validation"
    )
    return FieldError(FieldErrorType.INVALID, NO_PATH, None, message)


def _list_faults(schema: Schema, obj: Object, old: Object | None) -> list[FieldError]:
    """Return the faults of lists. An update is not refused for them if the stored object has such a fault already."""
    faults = list_faults(schema, obj)
    return [] if faults and old is not None and list_faults(schema, old) else faults
