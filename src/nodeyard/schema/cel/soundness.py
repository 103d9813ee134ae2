"""What can be wrong with a rule before its expression is looked at: a missing message, a path that leads nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodeyard.kube import fields
from nodeyard.kube.fields import FieldError
from nodeyard.schema.cel.paths import resolve
from nodeyard.schema.model import Rule, Schema

_LINE_BREAK = re.compile(r"[\n\r]")
_REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]


def rule_faults(schema: Schema, path: str) -> list[FieldError]:
    """Of the rules that stand at this schema."""
    found: list[FieldError] = []
    for position, rule in enumerate(schema.rules):
        found += _faults(rule, schema, f"{path}.x-kubernetes-validations[{position}]")
    return found


def _faults(rule: Rule, schema: Schema, path: str) -> Iterator[FieldError]:
    yield from _message_faults(rule, path)
    if rule.message_expression and not rule.message_expression.strip():
        yield fields.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.reason not in _REASONS:
        yield fields.not_supported(f"{path}.reason", rule.reason, _REASONS)
    if rule.field_path:
        yield from _path_faults(rule.field_path, schema, f"{path}.fieldPath")


def _message_faults(rule: Rule, path: str) -> Iterator[FieldError]:
    message = rule.message.strip()
    if not rule.rule.strip():
        yield fields.required(f"{path}.rule", "rule is not specified")
    elif rule.message and not message:
        yield fields.invalid(f"{path}.message", rule.message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message):
        yield fields.invalid(f"{path}.message", rule.message, "must not contain line breaks")
    elif _LINE_BREAK.search(rule.rule.strip()) and not message:
        yield fields.required(f"{path}.message", "message must be specified if rule contains line breaks")


def _path_faults(field_path: str, schema: Schema, path: str) -> Iterator[FieldError]:
    if not field_path.strip():
        yield fields.invalid(path, field_path, "must be non-empty if specified")
    if _LINE_BREAK.search(field_path):
        yield fields.invalid(path, field_path, "must not contain line breaks")
    if resolve(field_path, schema) is None:
        yield fields.invalid(path, field_path, "must be a valid path")
