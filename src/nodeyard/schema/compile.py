"""Compiles a CRD's openAPIV3Schema into a `Schema`.

The schema must be valid: callers check it with `definition_faults` first. Explicit defaults of the schema
language (`nullable: false`, `default: null`, an empty list) mean the same as a missing key.
"""

from __future__ import annotations

from typing import Any, Final

from nodeyard.kube.json import Json, Object
from nodeyard.schema.model import UNSET, Rule, Schema

# additionalProperties: true. Keys are kept; their values have no schema, so fields inside them are pruned.
OPEN: Final = Schema()

_PLAIN = {
    "type": "type",
    "nullable": "nullable",
    "x-kubernetes-int-or-string": "int_or_string",
    "x-kubernetes-preserve-unknown-fields": "preserve_unknown",
    "x-kubernetes-embedded-resource": "embedded",
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-map-type": "map_type",
    "format": "format",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minProperties": "min_properties",
    "maxProperties": "max_properties",
    "uniqueItems": "unique_items",
    "description": "description",
}
_TUPLES = {"required": "required", "x-kubernetes-list-map-keys": "list_map_keys"}
_BRANCHES = {"allOf": "all_of", "anyOf": "any_of", "oneOf": "one_of"}


def compile_schema(openapi: Object) -> Schema:
    """Compile a schema with all its children."""
    parts: dict[str, Any] = {}
    for key, value in openapi.items():
        if value is None:
            continue
        if key in _PLAIN:
            parts[_PLAIN[key]] = value
        elif key in _TUPLES:
            parts[_TUPLES[key]] = tuple(value)
        elif key in _BRANCHES:
            parts[_BRANCHES[key]] = tuple(compile_schema(branch) for branch in value)
    parts["properties"] = {name: compile_schema(child) for name, child in (openapi.get("properties") or {}).items()}
    default = openapi.get("default")
    parts["default"] = UNSET if default is None else default
    parts["enum"] = tuple(openapi["enum"]) if openapi.get("enum") else None
    parts["rules"] = tuple(_rule(rule) for rule in openapi.get("x-kubernetes-validations") or ())
    if openapi.get("items") is not None:
        parts["items"] = compile_schema(openapi["items"])
    if openapi.get("not") is not None:
        parts["not_"] = compile_schema(openapi["not"])
    return Schema(**parts, **_additional(openapi.get("additionalProperties")))


def _additional(declared: Json) -> dict[str, Any]:
    if declared is None:
        return {}
    if isinstance(declared, bool):
        return {"additional": OPEN, "closed": not declared}
    return {"additional": compile_schema(declared)}


def _rule(openapi: Object) -> Rule:
    return Rule(
        rule=openapi.get("rule", ""),
        message=openapi.get("message") or "",
        message_expression=openapi.get("messageExpression") or "",
        reason=openapi.get("reason") or "FieldValueInvalid",
        field_path=openapi.get("fieldPath") or "",
        optional_old_self=bool(openapi.get("optionalOldSelf")),
    )
