"""Validation of x-kubernetes-validations, without compiling the expressions."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.apiserver.cel.field_paths import FieldPathError, resolve
from nodeyard.apiserver.crds.schema.conversion import conversion_fault
from nodeyard.kube.fields import FieldError, child, index, invalid, not_supported, required
from nodeyard.kube.json import Object
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.model import Schema

_REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]


def rule_form_faults(node: Object, path: str) -> Iterator[FieldError]:
    rules = node.get("x-kubernetes-validations") or ()
    is_readable = any(rule.get("fieldPath") for rule in rules) and conversion_fault(node) is None
    schema = compile_schema(node) if is_readable else None
    for position, rule in enumerate(rules):
        place = index(child(path, "x-kubernetes-validations"), position)
        yield from _text_faults(rule, place)
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            yield not_supported(child(place, "reason"), reason, _REASONS)
        yield from _field_path_faults(schema, rule.get("fieldPath") or "", child(place, "fieldPath"))


def _text_faults(rule: Object, place: str) -> Iterator[FieldError]:
    expression, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not expression:
        yield required(child(place, "rule"), "rule is not specified")
    elif message and not message.strip():
        yield invalid(child(place, "message"), message, "must be non-empty if specified")
    elif _has_line_breaks(message.strip()):
        yield invalid(child(place, "message"), message, "must not contain line breaks")
    elif _has_line_breaks(expression) and not message:
        yield required(child(place, "message"), "message must be specified if rule contains line breaks")
    computed = rule.get("messageExpression") or ""
    if computed and not computed.strip():
        yield required(child(place, "messageExpression"), "messageExpression must be non-empty if specified")


def _field_path_faults(schema: Schema | None, field_path: str, place: str) -> Iterator[FieldError]:
    if not field_path:
        return
    if not field_path.strip():
        yield invalid(place, field_path, "must be non-empty if specified")
    if _has_line_breaks(field_path):
        yield invalid(place, field_path, "must not contain line breaks")
    if schema is None:
        return
    try:
        resolve(field_path, schema)
    except FieldPathError:
        yield invalid(place, field_path, "must be a valid path")


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text
