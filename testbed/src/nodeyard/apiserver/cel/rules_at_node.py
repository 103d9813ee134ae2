"""The rules at one node of a schema, and their evaluation for one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from nodeyard.apiserver.cel.access import whole
from nodeyard.apiserver.cel.correlation import Correlation
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.cel.environment import Compiled, compile_expression
from nodeyard.apiserver.cel.errors import CompileError, EvaluationError, InstantiationError
from nodeyard.apiserver.cel.field_paths import FieldPathError, resolve
from nodeyard.apiserver.cel.schemas import Adapter, adapter
from nodeyard.apiserver.cel.types import BOOL, STRING, Type, optional_of
from nodeyard.apiserver.cel.values import NONE, Optional
from nodeyard.kube import fields
from nodeyard.kube.fields import FieldError, FieldErrorType
from nodeyard.kube.goformat import plain_json
from nodeyard.kube.json import Json
from nodeyard.schema.faults import NO_PATH
from nodeyard.schema.model import Rule, Schema

SELF, OLD_SELF = "self", "oldSelf"
_LONGEST_MESSAGE = 5 * 1024
_CANCELLED = "operation cancelled: actual cost limit exceeded"
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_TYPES = {
    "FieldValueForbidden": FieldErrorType.FORBIDDEN,
    "FieldValueRequired": FieldErrorType.REQUIRED,
    "FieldValueDuplicate": FieldErrorType.DUPLICATE,
}


@dataclass(frozen=True)
class CompiledRule:
    rule: Rule
    compiled: Compiled
    message: Compiled | None
    field_path: str

    @property
    def uses_old(self) -> bool:
        return OLD_SELF in self.compiled.variables

    @property
    def text(self) -> str:
        """The name of the rule in errors."""
        return (self.rule.message or self.rule.rule).strip()


@dataclass
class Outcome:
    """The result of the rules, and the remaining budget."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """Errors of unchanged values, which do not fail the write."""
    budget: Budget = field(default_factory=Budget)


class Site:
    def __init__(self, schema: Schema, rules: Sequence[CompiledRule], adapt: Adapter | None) -> None:
        self._schema = schema
        self._rules = rules
        self._uses_old = any(rule.uses_old for rule in rules)
        self._adapt = adapt

    def evaluate(self, path: str, new: Json, old: Json, correlation: Correlation, outcome: Outcome) -> None:
        try:
            bindings = self._bindings(new, old)
        except EvaluationError as error:
            outcome.errors += [self._failure(path, rule, str(error), outcome.budget) for rule in self._rules]
            return
        for rule in self._rules:
            if rule.uses_old and old is None and not rule.rule.optional_old_self:
                continue
            bound = bindings[rule.rule.optional_old_self]
            try:
                holds = rule.compiled.program.evaluate(bound, outcome.budget)
            except EvaluationError as error:
                outcome.errors.append(self._failure(path, rule, str(error), outcome.budget))
                if outcome.budget.is_closed:
                    return
                continue
            if holds is True:
                continue
            refusal = self._refusal(path, rule, new, bound, outcome.budget)
            if rule.uses_old or not correlation.is_unchanged:
                outcome.errors.append(refusal)
            else:
                outcome.warnings.append(str(refusal))

    def _bindings(self, new: Json, old: Json) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the bindings of rules without and with optionalOldSelf."""
        current = self._adapted(new)
        if not self._uses_old:
            return {SELF: current}, {SELF: current}
        before = self._adapted(old) if old is not None else None
        optional = NONE if old is None else Optional(before)
        return {SELF: current, OLD_SELF: before}, {SELF: current, OLD_SELF: optional}

    def _adapted(self, value: Json) -> Any:
        return value if self._adapt is None else self._adapt(value)

    def _failure(self, path: str, rule: CompiledRule, error: str, budget: Budget) -> FieldError:
        """Return the error of a rule whose evaluation failed."""
        if error.startswith(_CANCELLED):
            budget.is_closed = True
        if budget.is_spent:
            detail = _OUT_OF_BUDGET
        elif budget.is_closed:
            detail = (
                f"'{error}': no further validation rules will be run due to call cost exceeds limit "
                f"for rule: {rule.text}"
            )
        elif error.startswith("no such overload"):
            detail = (
                f"'{error}': call arguments did not match a supported operator, function or macro signature "
                f"for rule: {rule.text}"
            )
        else:
            detail = f"{error} evaluating rule: {rule.text}"
        return fields.invalid(path or NO_PATH, self._schema.type, detail)

    def _refusal(
        self, path: str, rule: CompiledRule, value: Json, bindings: Mapping[str, Any], budget: Budget
    ) -> FieldError:
        """Return the error of a rule that is false."""
        path = (fields.child(path, rule.field_path) if rule.field_path else path) or NO_PATH
        shown = fields.OMITTED if self._schema.type in ("object", "array") else value
        kind = _TYPES.get(rule.rule.reason, FieldErrorType.INVALID)
        if kind is FieldErrorType.DUPLICATE:
            return FieldError(kind, path, shown)
        return FieldError(kind, path, shown, _message(rule, bindings, budget))


def _message(rule: CompiledRule, bindings: Mapping[str, Any], budget: Budget) -> str:
    if rule.message is not None:
        try:
            text = str(rule.message.program.evaluate(bindings, budget)).strip()
        except EvaluationError:
            text = ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    return rule.rule.message.strip() or f"failed rule: {rule.text}"


def compile_site(
    schema: Schema, declared: Type, path: str, *, is_root: bool, uncorrelatable: str
) -> tuple[Site, list[FieldError]]:
    """Compile the rules at a path of the CRD. `declared` is the type of `self`."""
    compiled: list[CompiledRule] = []
    errors: list[FieldError] = []
    for position, rule in enumerate(schema.rules):
        compiler = _RuleCompiler(rule, schema, declared, f"{path}.x-kubernetes-validations[{position}]")
        result = compiler.compile(uncorrelatable) if rule.rule.strip() else None
        errors += compiler.errors
        if result is not None:
            compiled.append(result)
    adapt = whole if schema.type == "integer" else adapter(schema, is_root=is_root)
    return Site(schema, compiled, adapt), errors


class _RuleCompiler:
    def __init__(self, rule: Rule, schema: Schema, declared: Type, path: str) -> None:
        self._rule = rule
        self._schema = schema
        self._path = path
        self._variables = {SELF: declared, OLD_SELF: optional_of(declared) if rule.optional_old_self else declared}
        self.errors: list[FieldError] = []

    def compile(self, uncorrelatable: str) -> CompiledRule | None:
        rule = self._rule
        compiled = self._expression(rule.rule, "rule", BOOL, "", "cel expression must evaluate to a bool")
        self._check_old(compiled, uncorrelatable)
        if compiled is None:
            return None
        message: Compiled | None = None
        if rule.message_expression:
            message = self._expression(
                rule.message_expression,
                "messageExpression",
                STRING,
                "messageExpression ",
                "messageExpression must evaluate to a string",
            )
        return CompiledRule(rule, compiled, message, self._field_path())

    def _field_path(self) -> str:
        try:
            return resolve(self._rule.field_path, self._schema).path
        except FieldPathError:
            return ""

    def _expression(self, source: str, name: str, wanted: Type, prefix: str, otherwise: str) -> Compiled | None:
        try:
            compiled = compile_expression(source, self._variables)
        except CompileError as error:
            detail = f"{prefix}compilation failed: {error}"
        except InstantiationError as error:
            detail = f"{prefix or 'program '}instantiation failed: {error}"
        else:
            if compiled.result == wanted:
                return compiled
            detail = otherwise
        self.errors.append(fields.invalid(f"{self._path}.{name}", _shown(self._rule), detail))
        return None

    def _check_old(self, compiled: Compiled | None, uncorrelatable: str) -> None:
        if compiled is None or OLD_SELF not in compiled.variables:
            if self._rule.optional_old_self:
                detail = "may not be set if oldSelf is not used in rule"
                self.errors.append(fields.invalid(f"{self._path}.optionalOldSelf", True, detail))
        elif uncorrelatable:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            self.errors.append(fields.invalid(f"{self._path}.rule", self._rule.rule, detail))


def _shown(rule: Rule) -> msgspec.Raw:
    """The rule as the API server prints the Go struct."""
    parts = {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": None if rule.reason == "FieldValueInvalid" else rule.reason,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": True if rule.optional_old_self else None,
    }
    text = ",".join(f'"{name}":{plain_json(value)}' for name, value in parts.items())
    return msgspec.Raw(f"{{{text}}}".encode())
