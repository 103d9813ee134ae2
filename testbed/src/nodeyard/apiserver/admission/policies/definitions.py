"""Policies and bindings, with their compiled expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.conditions import Conditions, Program
from nodeyard.apiserver.admission.expressions import PolicyScope
from nodeyard.apiserver.admission.namespaces import Namespaces
from nodeyard.apiserver.admission.rules import Endpoint, Match, Rules, first_match
from nodeyard.apiserver.admission.selectors import ObjectScope
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.kube.json import Object


class Coverage(msgspec.Struct, frozen=True):
    """The rules of a constraint that include an endpoint, and those that exclude it."""

    included: tuple[Match, ...]
    excluded: tuple[Match, ...]


class Constraint:
    """`matchConstraints` of a policy, `matchResources` of a binding."""

    def __init__(self, spec: Object) -> None:
        is_equivalent = spec.get("matchPolicy", "Equivalent") == "Equivalent"
        self._included = Rules(spec.get("resourceRules") or (), is_equivalent=is_equivalent)
        self._excluded = Rules(spec.get("excludeResourceRules") or (), is_equivalent=is_equivalent)
        self._scope = ObjectScope(spec)

    def cover(self, where: Endpoint) -> Coverage | None:
        """Return the matching rules, or None if no write to this endpoint can match. Without rules all match."""
        included = self._included.find(where) if self._included else (Match(where.version, frozenset()),)
        return Coverage(included, self._excluded.find(where)) if included else None

    def match(self, attributes: Attributes, coverage: Coverage, namespaces: Namespaces) -> str | None:
        """Return the version in which the object is evaluated if the write matches."""
        if not self._scope.includes(attributes, namespaces):
            return None
        if first_match(coverage.excluded, attributes.name) is not None:
            return None
        match = first_match(coverage.included, attributes.name)
        return match.version if match else None


@dataclass(frozen=True, slots=True)
class Validation:
    source: str
    program: Program
    message: str
    message_program: Program | None
    reason: str


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    key: str
    source: str
    program: Program


@dataclass(frozen=True, slots=True)
class ParamKind:
    api_version: str
    kind: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.api_version}, Kind={self.kind}"


class Expressions:
    """The compiled expressions of a policy."""

    def __init__(self, spec: Object) -> None:
        self.scope = PolicyScope(has_params=spec.get("paramKind") is not None, variables=spec.get("variables") or ())
        self.conditions = Conditions(spec.get("matchConditions") or (), self.scope.match_condition)
        self.validations = [_read_validation(entry, self.scope) for entry in spec.get("validations") or ()]
        self.annotations = [
            AuditAnnotation(entry["key"], entry["valueExpression"], self.scope.annotation(entry["valueExpression"]))
            for entry in spec.get("auditAnnotations") or ()
        ]


class Policy:
    def __init__(self, name: str, spec: Object) -> None:
        kind = spec.get("paramKind")
        self.name = name
        self.constraint = Constraint(spec.get("matchConstraints") or {})
        self.is_ignoring_failure = spec.get("failurePolicy", "Fail") == "Ignore"
        self.param_kind = ParamKind(kind.get("apiVersion", ""), kind.get("kind", "")) if kind else None
        self._spec = spec
        self._expressions: Expressions | None = None

    def expressions(self, budget: Budget) -> Expressions:
        """Return the expressions; the first call compiles them, perhaps off the event loop."""
        if self._expressions is None:
            budget.spend_on_compiling(policy_sources(self._spec))
            self._expressions = Expressions(self._spec)
        return self._expressions


def policy_sources(spec: Object) -> Iterator[str]:
    """Yield all expressions of a policy but its matchConditions."""
    for variable in spec.get("variables") or ():
        yield variable.get("expression") or ""
    for validation in spec.get("validations") or ():
        yield validation.get("expression") or ""
        yield validation.get("messageExpression") or ""
    for annotation in spec.get("auditAnnotations") or ():
        yield annotation.get("valueExpression") or ""


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    name: str
    policy: str
    constraint: Constraint | None
    param_ref: Object | None
    actions: tuple[str, ...]


def _read_validation(entry: Object, scope: PolicyScope) -> Validation:
    source, message = entry["expression"], entry.get("messageExpression")
    return Validation(
        source=source,
        program=scope.condition(source),
        message=(entry.get("message") or "").strip(),
        message_program=scope.message(message) if message else None,
        reason=entry.get("reason") or "Invalid",
    )


def read_binding(name: str, spec: Object) -> Binding:
    resources = spec.get("matchResources")
    return Binding(
        name=name,
        policy=spec.get("policyName", ""),
        constraint=Constraint(resources) if resources is not None else None,
        param_ref=spec.get("paramRef"),
        actions=tuple(spec.get("validationActions") or ()),
    )
