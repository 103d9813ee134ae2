"""One policy, one write, one set of parameters: what its expressions say."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.apiserver.admission.conditions import Bindings, ConditionError
from nodeyard.apiserver.admission.policies.definitions import AuditAnnotation, Policy, Validation
from nodeyard.apiserver.cel.errors import EvaluationError

_LONGEST_MESSAGE = 5 * 1024
_LONGEST_ANNOTATION = 10 * 1024


@dataclass(frozen=True, slots=True)
class Failure:
    """A validation that did not hold, or could not be evaluated."""

    index: int
    message: str
    reason: str = "Invalid"


@dataclass(slots=True)
class Verdict:
    failures: list[Failure] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Why the write is refused whatever the binding's actions: an audit annotation that could not be made."""
    audit: dict[str, str] = field(default_factory=dict)


def evaluate(policy: Policy, bindings: Bindings) -> Verdict:
    """`bindings` are what the expressions see; `authorizer` among them is kept from messages and annotations."""
    verdict = Verdict()
    try:
        if not policy.conditions.hold(bindings):
            return verdict
    except ConditionError as fault:
        if not policy.is_ignoring_failure:
            verdict.failures.append(Failure(0, str(fault)))
        return verdict
    for index, validation in enumerate(policy.validations):
        failure = _judge(policy, index, validation, bindings)
        if failure is not None:
            verdict.failures.append(failure)
    for annotation in policy.annotations:
        _annotate(policy, annotation, bindings, verdict)
    return verdict


def _judge(policy: Policy, index: int, validation: Validation, bindings: Bindings) -> Failure | None:
    try:
        if validation.program.evaluate(bindings) is True:
            return None
    except EvaluationError as fault:
        if policy.is_ignoring_failure:
            return None
        return Failure(index, _described(validation.source, fault))
    return Failure(index, _message(validation, bindings), validation.reason)


def _message(validation: Validation, bindings: Bindings) -> str:
    """What the message expression says, if it says something of use; else the message; else the expression."""
    if validation.message_program is not None:
        try:
            said = validation.message_program.evaluate(bindings)
        except EvaluationError:
            said = None
        said = said.strip() if isinstance(said, str) else ""
        if said and "\n" not in said and len(said) <= _LONGEST_MESSAGE:
            return said
    return validation.message or f"failed expression: {validation.source.strip()}"


def _annotate(policy: Policy, annotation: AuditAnnotation, bindings: Bindings, verdict: Verdict) -> None:
    try:
        value = annotation.program.evaluate(bindings)
    except EvaluationError as fault:
        if not policy.is_ignoring_failure:
            verdict.refusals.append(_described(annotation.source, fault))
        return
    text = value.strip() if isinstance(value, str) else ""
    if text:
        verdict.audit[annotation.key] = text[:_LONGEST_ANNOTATION]


def _described(source: str, fault: EvaluationError) -> str:
    return f"expression '{source}' resulted in error: {fault}"
