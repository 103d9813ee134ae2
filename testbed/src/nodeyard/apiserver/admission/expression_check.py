"""Refuses webhook configurations and policies whose expressions do not compile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes, Validating
from nodeyard.apiserver.admission.expressions import Broken, Compiled, PolicyScope, webhook_condition
from nodeyard.apiserver.admission.policies.definitions import policy_sources
from nodeyard.apiserver.admission.rules import ADMISSION_GROUP
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.kube import fields
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object, json_equal


class ExpressionCheck(Validating):
    """The plugin; it compiles the expressions of a write."""

    async def validate(self, attributes: Attributes) -> None:
        resource, obj = attributes.resource, attributes.object
        if resource.group != ADMISSION_GROUP or obj is None:
            return
        is_policy = resource.kind == "ValidatingAdmissionPolicy"
        faults = await attributes.work.evaluate(attributes.is_large, partial(_faults, obj, is_policy=is_policy))
        # Unchanged expressions are not refused, so that other fields can be updated.
        old = attributes.old or {}
        if faults and all(json_equal(old.get(part), obj.get(part)) for part in ("spec", "webhooks")):
            return
        if faults:
            raise errors.invalid(resource.group, resource.kind, attributes.name, faults)


def _faults(obj: Object, trial: Budget | None, *, is_policy: bool) -> list[FieldError]:
    spec = obj.get("spec") or {}
    if trial is not None:
        trial.spend_on_compiling(policy_sources(spec))
        for holder in (spec, *(obj.get("webhooks") or ())):
            trial.spend_on_compiling(each.get("expression") or "" for each in holder.get("matchConditions") or ())
    return list(_policy_faults(spec) if is_policy else _webhook_faults(obj))


def _webhook_faults(obj: Object) -> Iterator[FieldError]:
    for position, webhook in enumerate(obj.get("webhooks") or ()):
        for index, condition in enumerate(webhook.get("matchConditions") or ()):
            path = f"webhooks[{position}].matchConditions[{index}].expression"
            source = condition.get("expression", "")
            yield from _compile_faults(path, source, webhook_condition(source))


def _policy_faults(spec: Object) -> Iterator[FieldError]:
    scope = PolicyScope(has_params=spec.get("paramKind") is not None, variables=spec.get("variables") or ())
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        source = condition.get("expression", "")
        yield from _compile_faults(f"spec.matchConditions[{index}].expression", source, scope.match_condition(source))
    for index, (variable, fault) in enumerate(zip(spec.get("variables") or (), scope.faults, strict=True)):
        if fault:
            yield fields.invalid(f"spec.variables[{index}].expression", variable["expression"], fault)
    for index, validation in enumerate(spec.get("validations") or ()):
        path = f"spec.validations[{index}]"
        source, message = validation.get("expression", ""), validation.get("messageExpression")
        yield from _compile_faults(f"{path}.expression", source, scope.condition(source))
        if message:
            yield from _compile_faults(f"{path}.messageExpression", message, scope.message(message))
    for index, annotation in enumerate(spec.get("auditAnnotations") or ()):
        source = annotation.get("valueExpression", "")
        yield from _compile_faults(f"spec.auditAnnotations[{index}].valueExpression", source, scope.annotation(source))


def _compile_faults(path: str, source: str, compiled: Compiled) -> Iterator[FieldError]:
    if isinstance(compiled, Broken):
        yield fields.invalid(path, source, compiled.fault)
