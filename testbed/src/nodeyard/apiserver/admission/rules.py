"""The rules of webhooks and policies: operation, group, version, resource and scope.

Only the endpoint decides whether a rule matches, so the result of `Rules.find` is cached for each endpoint. Selectors
and names are checked for each write.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.resources import Resource
from nodeyard.kube.json import Object

EXEMPT_KINDS = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
ADMISSION_GROUP = "admissionregistration.k8s.io"


def is_exempt(attributes: Attributes) -> bool:
    """Return True if the write configures admission itself: no webhook or policy may prevent its repair."""
    resource = attributes.resource
    return resource.group == ADMISSION_GROUP and resource.kind in EXEMPT_KINDS


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """The attributes of a write that do not depend on the object."""

    operation: str
    resource: str
    group: str
    version: str
    subresource: str
    is_namespaced: bool
    equivalents: tuple[str, ...]
    """The other versions in which the same object could be written."""


def endpoint(attributes: Attributes) -> Endpoint:
    resource = attributes.resource
    return Endpoint(
        attributes.operation,
        resource.plural,
        resource.group,
        attributes.version,
        attributes.subresource,
        resource.namespaced,
        _equivalents(resource, attributes),
    )


def _equivalents(resource: Resource, attributes: Attributes) -> tuple[str, ...]:
    # An object of another kind (Eviction, Scale) has a version of its own, which does not follow the resource's.
    if len(resource.versions) == 1 or attributes.kind is not None:
        return ()
    return tuple(name for name, version in resource.versions.items() if version.served and name != attributes.version)


class Rule(msgspec.Struct, frozen=True):
    """One rule of a webhook, or of a policy's match constraints."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str
    names: frozenset[str]

    def covers(self, where: Endpoint, version: str) -> bool:
        return (
            _includes(self.operations, where.operation)
            and _includes(self.groups, where.group)
            and _includes(self.versions, version)
            and (self.scope == "*" or (self.scope == "Namespaced") is where.is_namespaced)
            and any(
                resource in ("*", where.resource) and subresource in ("*", where.subresource)
                for resource, subresource in self.resources
            )
        )


def _includes(items: frozenset[str], wanted: str) -> bool:
    return wanted in items or "*" in items


def read_rule(rule: Object) -> Rule:
    resources = []
    for text in rule.get("resources") or ():
        resource, _, subresource = text.partition("/")
        resources.append((resource, subresource))
    return Rule(
        frozenset(rule.get("operations") or ()),
        frozenset(rule.get("apiGroups") or ()),
        frozenset(rule.get("apiVersions") or ()),
        tuple(resources),
        rule.get("scope") or "*",
        frozenset(rule.get("resourceNames") or ()),
    )


class Match(msgspec.Struct, frozen=True):
    """The version that a rule matches an endpoint in, and the rule's resourceNames."""

    version: str
    names: frozenset[str]


class Rules:
    """Rules of which one must match: the exact version first, then equivalent ones if matchPolicy allows it."""

    def __init__(self, rules: Iterable[Object], *, is_equivalent: bool) -> None:
        self._rules = [read_rule(rule) for rule in rules]
        self._is_equivalent = is_equivalent

    def __bool__(self) -> bool:
        return bool(self._rules)

    def find(self, where: Endpoint) -> tuple[Match, ...]:
        """Return the rules that match the endpoint, by precedence."""
        found = [Match(where.version, rule.names) for rule in self._rules if rule.covers(where, where.version)]
        if self._is_equivalent:
            found.extend(
                Match(version, rule.names)
                for rule in self._rules
                for version in where.equivalents
                if rule.covers(where, version)
            )
        return tuple(found)


def first_match(matches: tuple[Match, ...], name: str) -> Match | None:
    """Return the first match for this name; a rule without resourceNames matches every name."""
    for match in matches:
        if not match.names or name in match.names:
            return match
    return None
