"""CRD validation by field: CEL rules and limits that the API server checks.

The selectors of a class are immutable: a change would put all running pods outside the class at once, and a release in
progress would not notice. Use another class instead. Checks that depend on other objects (does a class exist, what does
the parent allow, how long is the namespace of a nested tenant) belong to the webhook and the plan. Tenant and
ApplicationDefinition have more fields upstream; the CRDs preserve them.

`declaration_faults` are checks of an ApplicationDefinition that the webhook and the plan share: names that the API
server accepts, and a chart reference that Flux can resolve. `planning.structural_schema` checks its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.types import ApplicationDefinition, Enforcement, UnownedPods
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX, dns_1035_faults, label_value_faults
from nodeyard.schema.rules import (
    CONDITIONS,
    KEY,
    KEY_MAX,
    KEY_MESSAGE,
    LABEL,
    SUBDOMAIN,
    VALUE,
    VALUE_MESSAGE,
    checks,
    label_map,
    rule,
)

RELEASE_NAME_MAX: Final = 53
"""Helm's limit."""
CHART_KINDS: Final = ("OCIRepository", "HelmChart", "ExternalArtifact")
TENANT_NAME_MAX: Final = RELEASE_NAME_MAX - len(names.TENANT_PREFIX)
_MOST_TERMS: Final = 20
_MOST_EXPRESSIONS: Final = 10
_MOST_VALUES: Final = 50
_MOST_CLASSES: Final = 100
_SCHEMA_MAX: Final = 512 * 1024
_OPEN: Final[Object] = {"x-kubernetes-preserve-unknown-fields": True}
_STATUS: Final[dict[str, Object]] = {
    "status.observedGeneration": {"format": "int64", "minimum": 0},
    "status.conditions": CONDITIONS,
}
_CLASS_NAME: Final = f"^{SUBDOMAIN}$"
_CLASS_MESSAGE: Final = "must be the name of an AffinityClass: at most 63 lower case letters, digits, '-' and '.'"


def _text(most: int, least: int = 0) -> Object:
    return {"minLength": least, "maxLength": most} if least else {"maxLength": most}


def _unchanged(field: str) -> str:
    """Return a CEL rule: the field is neither changed nor added nor removed."""
    return f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"


# classes


def _described(description: str, **schema: object) -> Object:
    return {"description": description, **schema}


_EXPRESSION: Final[Object] = {
    "type": "object",
    "required": ["key", "operator"],
    "properties": {
        "key": _described(
            "Label key.",
            type="string",
            **checks(rule(f"self.matches('{KEY}')", KEY_MESSAGE), minLength=1, maxLength=KEY_MAX),
        ),
        "operator": _described(
            "In, NotIn, Exists, DoesNotExist, Gt or Lt.",
            type="string",
            enum=["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
        ),
        "values": _described(
            "Values to compare with: at least one for In and NotIn, one number for Gt and Lt, none for the others.",
            type="array",
            maxItems=_MOST_VALUES,
            items={"type": "string", **_text(LABEL_VALUE_MAX)},
            **{"x-kubernetes-list-type": "atomic"},
        ),
    },
    **checks(
        rule(
            "!(self.operator in ['In', 'NotIn']) || has(self.values) && size(self.values) > 0",
            "In and NotIn need at least one value",
        ),
        rule(
            "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
            "Exists and DoesNotExist take no values",
        ),
        rule(
            "!(self.operator in ['Gt', 'Lt']) || has(self.values) && size(self.values) == 1 "
            "&& self.values[0].matches('^-?[0-9]{1,18}$')",
            "Gt and Lt need exactly one whole number",
        ),
        rule(
            f"!has(self.values) || self.operator in ['Gt', 'Lt'] || self.values.all(v, v.matches('{VALUE}'))",
            VALUE_MESSAGE,
        ),
    ),
}
_FIELD: Final[Object] = {
    "type": "object",
    "required": ["key", "operator", "values"],
    "properties": {
        "key": _described("metadata.name, the only supported field.", type="string", enum=["metadata.name"]),
        "operator": _described("In or NotIn.", type="string", enum=["In", "NotIn"]),
        "values": _described(
            "The name of one node.",
            type="array",
            minItems=1,
            maxItems=1,
            items={"type": "string", **_text(SUBDOMAIN_MAX, 1)},
            **{"x-kubernetes-list-type": "atomic"},
        ),
    },
}


def _requirements(description: str, items: Object) -> Object:
    return _described(
        description, type="array", maxItems=_MOST_EXPRESSIONS, items=items, **{"x-kubernetes-list-type": "atomic"}
    )


_TERM: Final[Object] = {
    "type": "object",
    "properties": {
        "matchExpressions": _requirements("Requirements on node labels; all must hold.", _EXPRESSION),
        "matchFields": _requirements("Requirements on the node name; all must hold.", _FIELD),
    },
    **checks(
        rule(
            "has(self.matchExpressions) && size(self.matchExpressions) > 0 "
            "|| has(self.matchFields) && size(self.matchFields) > 0",
            "a term without requirements matches no node: add one, or remove the term",
        )
    ),
}
_REQUIRED: Final = "spec.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
CLASS: Final[dict[str, Object]] = {
    "": checks(
        rule(
            f"size(self.metadata.name) <= {LABEL_VALUE_MAX}",
            f"metadata.name becomes the value of label {names.AFFINITY_CLASS}: at most {LABEL_VALUE_MAX} characters",
        ),
        required=["spec"],
    ),
    "spec": checks(
        rule(
            "has(self.nodeSelector) && size(self.nodeSelector) > 0 || has(self.nodeAffinity)",
            "a class needs a nodeSelector, required node affinity, or both",
        ),
        rule(
            _unchanged("nodeSelector"), "nodeSelector cannot change: create another class and move applications to it"
        ),
        rule(
            _unchanged("nodeAffinity"), "nodeAffinity cannot change: create another class and move applications to it"
        ),
    ),
    **label_map("spec.nodeSelector"),
    "spec.nodeAffinity": {"required": [_REQUIRED.rpartition(".")[2]]},
    _REQUIRED: {
        "additionalProperties": None,
        "required": ["nodeSelectorTerms"],
        "properties": {
            "nodeSelectorTerms": _described(
                "Terms; at least one must hold.",
                type="array",
                minItems=1,
                maxItems=_MOST_TERMS,
                items=_TERM,
                **{"x-kubernetes-list-type": "atomic"},
            )
        },
    },
    "spec.enforcement": {"default": str(Enforcement.DENY)},
    **_STATUS,
}


# tenants

_IS_CLASS: Final = f"size(self) <= {LABEL_VALUE_MAX} && self.matches('{_CLASS_NAME}')"
TENANT: Final[dict[str, Object]] = {
    "": checks(
        rule(
            "self.metadata.name.matches('^[a-z][a-z0-9]*$')",
            "metadata.name must be lower case letters and digits, a letter first, without '-': it becomes part of "
            "namespace names, where '-' separates a tenant from the tenants within it",
        ),
        rule(
            f"size(self.metadata.name) <= {TENANT_NAME_MAX}",
            f"metadata.name must have at most {TENANT_NAME_MAX} characters: with the prefix {names.TENANT_PREFIX!r} it "
            "is the name of a Helm release",
        ),
    ),
    "spec": checks(
        rule(
            "!has(self.defaultAffinityClass) || self.defaultAffinityClass == '' "
            "|| !has(self.allowedAffinityClasses) || self.defaultAffinityClass in self.allowedAffinityClasses",
            "defaultAffinityClass must be one of allowedAffinityClasses",
            "'defaultAffinityClass ' + self.defaultAffinityClass + ' is not one of allowedAffinityClasses'",
        ),
        **_OPEN,
    ),
    "spec.defaultAffinityClass": checks(rule(f"self == '' || {_IS_CLASS}", _CLASS_MESSAGE), maxLength=LABEL_VALUE_MAX),
    "spec.allowedAffinityClasses": {"maxItems": _MOST_CLASSES, "x-kubernetes-list-type": "set"},
    "spec.allowedAffinityClasses[]": checks(rule(_IS_CLASS, _CLASS_MESSAGE), maxLength=LABEL_VALUE_MAX),
    "spec.unownedPods": {"default": str(UnownedPods.ALLOW)},
    "spec.host": _text(SUBDOMAIN_MAX),
    "status": _OPEN,
    **_STATUS,
}


# definitions

_DNS_LABEL: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
_DNS_MESSAGE: Final = "must be lower case letters, digits and '-', a letter first, and no '-' last"
DEFINITION: Final[dict[str, Object]] = {
    "": checks(
        rule(
            f"size(self.metadata.name) <= {LABEL_VALUE_MAX}",
            f"metadata.name becomes the value of label {names.DECLARED_BY}: at most {LABEL_VALUE_MAX} characters",
        ),
        required=["spec"],
    ),
    "spec": {"required": ["application", "release"], **_OPEN},
    "spec.application": {"required": ["kind", "plural", "singular", "openAPISchema"], **_OPEN},
    "spec.application.kind": checks(
        rule("self.matches('^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$')", "must be a kind in CamelCase, such as Postgres"),
        maxLength=LABEL_VALUE_MAX,
    ),
    "spec.application.plural": checks(rule(f"self.matches('{_DNS_LABEL}')", _DNS_MESSAGE), maxLength=LABEL_VALUE_MAX),
    "spec.application.singular": checks(rule(f"self.matches('{_DNS_LABEL}')", _DNS_MESSAGE), maxLength=LABEL_VALUE_MAX),
    "spec.application.openAPISchema": _text(_SCHEMA_MAX),
    "spec.release": {"required": ["chartRef"], **_OPEN},
    "spec.release.prefix": checks(
        rule(
            "self == '' || self.matches('^[a-z][-a-z0-9]*$')",
            "must be lower case letters, digits and '-', a letter first",
        ),
        maxLength=RELEASE_NAME_MAX - 1,
    ),
    **label_map("spec.release.labels"),
    "spec.release.chartRef": {"required": ["kind", "name"], **_OPEN},
    "spec.release.chartRef.kind": {"enum": list(CHART_KINDS)},
    "spec.release.chartRef.name": _text(SUBDOMAIN_MAX, 1),
    "spec.release.chartRef.namespace": checks(
        rule(f"self == '' || self.matches('^{LABEL}$')", "must be lower case letters, digits and '-'"),
        maxLength=LABEL_VALUE_MAX,
    ),
    "status": _OPEN,
    **_STATUS,
}


# checks that the webhook and the plan share


_KIND_MAX: Final = 59
"""The list kind is four letters longer, at most 63 characters."""


def declaration_faults(definition: ApplicationDefinition) -> list[str]:
    """Return the faults, each with its field and value."""
    return [*_name_faults(definition), *_release_faults(definition)]


def _name_faults(definition: ApplicationDefinition) -> Iterator[str]:
    if label_value_faults(definition.name):
        yield f"metadata.name {definition.name!r} is too long: it becomes a label value, of at most 63 characters"
    given = definition.spec.application
    for field, value in (("plural", given.plural), ("singular", given.singular)):
        if faults := dns_1035_faults(value):
            yield f"spec.application.{field} {value!r}: {faults[0]}"
    if len(given.kind) > _KIND_MAX:
        yield f"spec.application.kind {given.kind!r}: must be no more than {_KIND_MAX} characters"
    elif faults := dns_1035_faults(given.kind.lower()):
        yield f"spec.application.kind {given.kind!r}: may have mixed case, but otherwise {faults[0]}"
    if names.TENANT_KIND.lower() in (given.kind.lower(), given.singular) or given.plural == names.TENANT_PLURAL:
        yield f"spec.application.kind {given.kind!r}: {names.TENANT_KIND} is built in and cannot be declared"


def _release_faults(definition: ApplicationDefinition) -> Iterator[str]:
    release = definition.spec.release
    if release.prefix and dns_1035_faults(f"{release.prefix}x"):
        yield f"spec.release.prefix {release.prefix!r}: must be lower case letters, digits and '-', a letter first"
    elif len(release.prefix) >= RELEASE_NAME_MAX:
        yield f"spec.release.prefix {release.prefix!r}: leaves no room for a name within {RELEASE_NAME_MAX} characters"
    chart = release.chart_ref
    if chart is None or not chart.name:
        yield "spec.release.chartRef: set kind, name and namespace of the chart to release"
    elif chart.kind not in CHART_KINDS:
        yield f"spec.release.chartRef.kind {chart.kind!r}: must be one of {', '.join(CHART_KINDS)}"
