"""The evaluation of one policy for one write and one object of parameters."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.apiserver.admission.conditions import OUT_OF_BUDGET, Bindings, ConditionError
from nodeyard.apiserver.admission.policies.definitions import AuditAnnotation, Policy, Validation
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.cel.errors import EvaluationError

_LONGEST_MESSAGE = 5 * 1024
_LONGEST_ANNOTATION = 10 * 1024


@dataclass(frozen=True, slots=True)
class Failure:
    """A validation that is false or could not be evaluated."""

    index: int
    message: str
    reason: str = "Invalid"


@dataclass(slots=True)
class ValidateResult:
    failures: list[Failure] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Refusals that do not depend on the binding's actions: audit annotations that failed."""
    audit: dict[str, str] = field(default_factory=dict)


def evaluate(policy: Policy, bindings: Bindings, trial: Budget | None = None) -> ValidateResult:
    """Evaluate the expressions; `authorizer` among the bindings is kept from messages and annotations.

    They are paid from the trial budget, which may be shared with other policies, or from budgets of their own.
    """
    budget = trial or Budget()
    expressions = policy.expressions(budget)
    bindings = expressions.scope.complete(bindings, budget)
    result = ValidateResult()
    try:
        if not expressions.conditions.hold(bindings, trial):
            return result
    except ConditionError as fault:
        if not policy.is_ignoring_failure:
            result.failures.append(Failure(0, str(fault)))
        return result
    for index, validation in enumerate(expressions.validations):
        failure = _judge(policy, index, validation, bindings, budget)
        if budget.is_spent:
            return ValidateResult([] if policy.is_ignoring_failure else [Failure(0, OUT_OF_BUDGET)])
        if failure is not None:
            result.failures.append(failure)
    for annotation in expressions.annotations:
        _annotate(policy, annotation, bindings, result, budget)
    return result


def _judge(policy: Policy, index: int, validation: Validation, bindings: Bindings, budget: Budget) -> Failure | None:
    try:
        if validation.program.evaluate(bindings, budget) is True:
            return None
    except EvaluationError as fault:
        if policy.is_ignoring_failure:
            return None
        return Failure(index, _described(validation.source, fault))
    return Failure(index, _message(validation, bindings, budget), validation.reason)


def _message(validation: Validation, bindings: Bindings, budget: Budget) -> str:
    """Return the result of messageExpression if it is usable, else the message, else the expression."""
    if validation.message_program is not None:
        try:
            message = validation.message_program.evaluate(bindings, budget)
        except EvaluationError:
            message = None
        message = message.strip() if isinstance(message, str) else ""
        if message and "\n" not in message and len(message) <= _LONGEST_MESSAGE:
            return message
    return validation.message or f"failed expression: {validation.source.strip()}"


def _annotate(
    policy: Policy, annotation: AuditAnnotation, bindings: Bindings, result: ValidateResult, budget: Budget
) -> None:
    try:
        value = annotation.program.evaluate(bindings, budget)
    except EvaluationError as fault:
        if not policy.is_ignoring_failure:
            result.refusals.append(_described(annotation.source, fault))
        return
    text = value.strip() if isinstance(value, str) else ""
    if text:
        result.audit[annotation.key] = text[:_LONGEST_ANNOTATION]


def _described(source: str, fault: EvaluationError) -> str:
    return f"expression '{source}' resulted in error: {fault}"
