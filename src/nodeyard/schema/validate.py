"""Whether a custom resource is what its schema says, in the server's words and order.

First the values, with what an update may leave unchanged; then resources embedded in the object; then lists that are
sets or maps. Rules in CEL come after these, and not at all while a fault stands that would make them answer nonsense.
"""

from __future__ import annotations

from nodeyard.kube.fields import FieldError, FieldErrorType
from nodeyard.kube.json import Json, Object
from nodeyard.schema.branches import run
from nodeyard.schema.checks import table_of
from nodeyard.schema.embedded import embedded_faults
from nodeyard.schema.faults import NOWHERE, errors
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
    """Of an object as it is created, or as it is updated when there is an old one."""
    faults = value_faults(schema, obj, UNSET if old is None else old)
    faults += embedded_faults(schema, obj)
    faults += _list_faults(schema, obj, old)
    return faults


def validate_status(schema: Schema, obj: Object, old: Object) -> list[FieldError]:
    """Of a write to the status subresource, which judges status as an object of its own."""
    status = schema.properties.get("status")
    faults: list[FieldError] = []
    if status is not None and "status" in obj:
        faults += value_faults(status, obj["status"], old.get("status", UNSET), "status")
    return faults + _list_faults(schema, obj, old)


def value_faults(schema: Schema, value: Json, old: Json = UNSET, path: str = "") -> list[FieldError]:
    """Types, limits, patterns, formats, branches: all but lists' keys and embedded resources."""
    faults = run(table_of(schema), value)
    if faults and old is not UNSET:
        pair = Pair(schema, value, old)
        faults = [fault for fault in faults if not is_tolerated(pair, fault)]
    return errors(faults, path) if faults else []


def rules_blocked(faults: list[FieldError]) -> FieldError | None:
    """What is told in place of the CEL rules when these faults keep them from being asked."""
    if not any(fault.type in _BLOCKING for fault in faults):
        return None
    words = (
        "some validation rules were not checked because the object was invalid; correct the existing errors to "
        "complete validation"
    )
    return FieldError(FieldErrorType.INVALID, NOWHERE, None, words)


def _list_faults(schema: Schema, obj: Object, old: Object | None) -> list[FieldError]:
    """Once the stored object has such a fault, no update is held up by any."""
    faults = list_faults(schema, obj)
    return [] if faults and old is not None and list_faults(schema, old) else faults
