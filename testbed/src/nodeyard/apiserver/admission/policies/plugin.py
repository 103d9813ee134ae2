"""The ValidatingAdmissionPolicy plugin: evaluates every policy that matches a write, and answers the first denial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from nodeyard.apiserver.admission.attributes import Attributes, Validating
from nodeyard.apiserver.admission.conditions import Bindings
from nodeyard.apiserver.admission.expressions import namespace_value
from nodeyard.apiserver.admission.namespaces import NAMESPACES, Namespaces, namespace_of
from nodeyard.apiserver.admission.policies.definitions import Binding, Coverage, Policy
from nodeyard.apiserver.admission.policies.evaluation import Failure, ValidateResult, evaluate
from nodeyard.apiserver.admission.policies.index import BoundPolicy, PolicyIndex
from nodeyard.apiserver.admission.policies.params import ConfigurationError, Params
from nodeyard.apiserver.admission.rules import is_exempt
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.errors import ApiError
from nodeyard.kube.json import Object

_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_FAILURE_ANNOTATION = "validation.policy.admission.k8s.io/validation_failure"

Bind = Callable[[Attributes, str], Bindings]


class _Denial(NamedTuple):
    policy: str
    binding: str
    message: str
    reason: str = "Invalid"

    def __str__(self) -> str:
        by = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{by} denied request: {self.message}"


class _Evaluation(NamedTuple):
    """A policy to evaluate for one binding and one object of parameters."""

    policy: Policy
    binding: Binding
    bindings: Bindings
    has_large_params: bool


class ValidatingPolicies(Validating):
    def __init__(self, index: PolicyIndex, params: Params, namespaces: Namespaces, bind: Bind) -> None:
        self._index = index
        self._params = params
        self._namespaces = namespaces
        self._bind = bind

    async def validate(self, attributes: Attributes) -> None:
        concerning = self._index.concerning(attributes)
        if not concerning or is_exempt(attributes):
            return
        steps = [step for bound in concerning for step in self._steps(bound, attributes)]
        evaluations = [step for step in steps if isinstance(step, _Evaluation)]
        is_large = attributes.is_large or any(step.has_large_params for step in evaluations)
        results = iter(await attributes.work.evaluate(is_large, partial(_evaluate, evaluations)))
        denials: list[_Denial] = []
        annotations: dict[str, dict[str, None]] = {}
        for step in steps:
            if isinstance(step, _Denial):
                denials.append(step)
                continue
            result = next(results)
            denials += _outcome(step.policy, step.binding, result, attributes)
            for key, value in result.audit.items():
                annotations.setdefault(f"{step.policy.name}/{key}", {})[value] = None
        for key, values in annotations.items():
            attributes.annotate(key, ", ".join(values))
        if denials:
            raise _refusal(attributes, denials[0])

    def _steps(self, bound: BoundPolicy, attributes: Attributes) -> Iterator[_Evaluation | _Denial]:
        """The evaluations of a policy that the write needs, and refusals because it cannot be evaluated."""
        policy = bound.policy
        version = policy.constraint.match(attributes, bound.coverage, self._namespaces)
        if version is None:
            return
        try:
            if policy.param_kind is not None:
                self._params.resource(policy.param_kind)
        except ConfigurationError as fault:
            yield from _misconfigured(policy, None, fault)
            return
        seen: Bindings | None = None
        for binding, coverage in bound.bindings:
            if not self._applies(binding, coverage, attributes):
                continue
            try:
                found = self._params.collect(policy.param_kind, binding, namespace_of(attributes))
            except ConfigurationError as fault:
                yield from _misconfigured(policy, binding, fault)
                continue
            for params in found:
                seen = seen or {**self._bind(attributes, version), "namespaceObject": self._namespace(attributes)}
                yield _Evaluation(policy, binding, {**seen, "params": params.object}, params.is_large)

    def _applies(self, binding: Binding, coverage: Coverage | None, attributes: Attributes) -> bool:
        if binding.constraint is None or coverage is None:
            return True
        return binding.constraint.match(attributes, coverage, self._namespaces) is not None

    def _namespace(self, attributes: Attributes) -> Object | None:
        """The object of the namespace; None for a Namespace."""
        if attributes.resource.key == NAMESPACES:
            return None
        namespace = self._namespaces.get(attributes.namespace)
        return namespace_value(namespace.object()) if namespace else None


def _evaluate(evaluations: Sequence[_Evaluation], trial: Budget | None) -> list[ValidateResult]:
    return [evaluate(each.policy, each.bindings, trial) for each in evaluations]


def _outcome(policy: Policy, binding: Binding, result: ValidateResult, attributes: Attributes) -> list[_Denial]:
    """Apply the binding's actions to the failures."""
    denials: list[_Denial] = []
    for failure in result.failures:
        if "Warn" in binding.actions:
            attributes.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}': "
                f"{failure.message}"
            )
        if "Audit" in binding.actions:
            attributes.annotate(_FAILURE_ANNOTATION, _audit_failure(policy, binding, failure))
        if "Deny" in binding.actions:
            denials.append(_Denial(policy.name, binding.name, failure.message, failure.reason))
    denials.extend(_Denial(policy.name, binding.name, message) for message in result.refusals)
    return denials


def _audit_failure(policy: Policy, binding: Binding, failure: Failure) -> str:
    entry = {
        "message": failure.message,
        "policy": policy.name,
        "binding": binding.name,
        "expressionIndex": failure.index,
        "validationActions": binding.actions,
    }
    return msgspec.json.encode([entry]).decode()


def _misconfigured(policy: Policy, binding: Binding | None, fault: ConfigurationError) -> list[_Denial]:
    if policy.is_ignoring_failure:
        return []
    what = "binding" if binding else "policy"
    return [_Denial(policy.name, binding.name if binding else "", f"failed to configure {what}: {fault}")]


def _refusal(attributes: Attributes, denial: _Denial) -> ApiError:
    error = attributes.forbidden(str(denial))
    error.reason = denial.reason
    error.code = _CODES.get(denial.reason, 422)
    error.details = {**(error.details or {}), "causes": [{"message": str(denial)}]}
    return error
