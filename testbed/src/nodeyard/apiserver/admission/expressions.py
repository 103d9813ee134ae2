"""CEL expressions of admission: their variables, their compilation, and the bindings of a write.

An invalid expression is refused when its object is written (`expression_check.py`). If one is stored nevertheless, each
evaluation of it fails, and failurePolicy decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.authorizer_library import (
    AUTHORIZER,
    OVERLOADS,
    RESOURCE_CHECK,
    AuthorizerValue,
    request_resource,
)
from nodeyard.apiserver.admission.conditions import Bindings
from nodeyard.apiserver.admission.webhooks.reviews import admission_request, in_version
from nodeyard.apiserver.authorization import Authorizer
from nodeyard.apiserver.cel.admission import NAMESPACE, REQUEST
from nodeyard.apiserver.cel.composition import Composition
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.cel.declarations import Functions
from nodeyard.apiserver.cel.errors import CompileError, EvaluationError
from nodeyard.apiserver.cel.expressions import Expression
from nodeyard.apiserver.cel.library import FUNCTIONS
from nodeyard.apiserver.cel.timestamps import parse_timestamp
from nodeyard.apiserver.cel.types import BOOL, DYN, NULL, STRING, Type
from nodeyard.kube.json import Object

_FUNCTIONS = Functions(FUNCTIONS, OVERLOADS)
_REQUEST_RESOURCE = "authorizer.requestResource"
_WITHOUT_AUTHORIZER: Mapping[str, Type] = {
    "object": DYN,
    "oldObject": DYN,
    "request": REQUEST,
    "namespaceObject": NAMESPACE,
}
_WITH_AUTHORIZER = {**_WITHOUT_AUTHORIZER, "authorizer": AUTHORIZER, _REQUEST_RESOURCE: RESOURCE_CHECK}


class Broken:
    """An expression that does not compile; its evaluation fails."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def evaluate(self, bindings: Mapping[str, Any], budget: Budget | None = None) -> Any:
        raise EvaluationError(self.fault)


Compiled = Expression | Broken


def _compile(source: str, variables: Mapping[str, Type], *results: Type) -> Compiled:
    try:
        return Expression.compile(source, variables, results, _FUNCTIONS)
    except CompileError as fault:
        return Broken(str(fault))


def webhook_condition(source: str) -> Compiled:
    """Compile a matchCondition of a webhook."""
    return _compile(source, _WITH_AUTHORIZER, BOOL)


class PolicyScope:
    """The declarations for the expressions of one policy: request, parameters and variables."""

    def __init__(self, *, has_params: bool, variables: Iterable[Object] = ()) -> None:
        params: Mapping[str, Type] = {"params": DYN} if has_params else {}
        self._without_authorizer: Mapping[str, Type] = {**_WITHOUT_AUTHORIZER, **params}
        self._with_authorizer: Mapping[str, Type] = {**_WITH_AUTHORIZER, **params}
        self._unvaried = self._with_authorizer
        self._composition: Composition | None = None
        self.faults: list[str] = []
        """The compile error of each variable, or an empty string."""
        for variable in variables:
            self._declare(variable["name"], variable["expression"])

    def match_condition(self, source: str) -> Compiled:
        """Compile a matchCondition, which has no variables."""
        return _compile(source, self._unvaried, BOOL)

    def condition(self, source: str) -> Compiled:
        return _compile(source, self._with_authorizer, BOOL)

    def message(self, source: str) -> Compiled:
        return _compile(source, self._without_authorizer, STRING)

    def annotation(self, source: str) -> Compiled:
        return _compile(source, self._without_authorizer, STRING, NULL)

    def complete(self, bindings: Bindings, budget: Budget) -> Bindings:
        """Add `variables` to the bindings; each is evaluated when it is first used."""
        return self._composition.bind(bindings, budget) if self._composition else bindings

    def _declare(self, name: str, source: str) -> None:
        if self._composition is None:
            self._composition = Composition(self._with_authorizer, _FUNCTIONS)
            declared = self._composition.scope["variables"]
            self._with_authorizer = self._composition.scope
            self._without_authorizer = {**self._without_authorizer, "variables": declared}
        try:
            self._composition.declare(name, source)
            self.faults.append("")
        except CompileError as fault:
            self.faults.append(str(fault))


class Binder:
    """Makes the bindings of a write."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, attributes: Attributes, version: str) -> Bindings:
        asking = AuthorizerValue(self._authorizer, attributes.user)
        return {
            "object": in_version(attributes, attributes.object, version),
            "oldObject": in_version(attributes, attributes.old, version),
            "request": admission_request(attributes, version),
            "namespaceObject": None,
            "authorizer": asking,
            _REQUEST_RESOURCE: request_resource(asking, attributes),
        }


def namespace_value(namespace: Object) -> Object:
    """Return a Namespace as `namespaceObject`: without hidden fields, times as timestamps."""
    metadata = {
        key: value for key, value in namespace["metadata"].items() if key not in ("managedFields", "ownerReferences")
    }
    for key in ("creationTimestamp", "deletionTimestamp"):
        if isinstance(metadata.get(key), str):
            metadata[key] = parse_timestamp(metadata[key])
    return {**namespace, "metadata": metadata}
