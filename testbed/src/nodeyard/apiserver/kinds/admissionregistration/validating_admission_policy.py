"""ValidatingAdmissionPolicies. Admission compiles their expressions."""

from __future__ import annotations

import re
from datetime import datetime

from nodeyard.apiserver.kinds.admissionregistration.rules import (
    MATCH_DEFAULTS,
    condition_errors,
    resource_name_errors,
    rule_errors,
)
from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of, number_column, spec_of, text_column
from nodeyard.apiserver.kinds.edits import filler, keep_metadata
from nodeyard.apiserver.kinds.strategy import Paths, WithStatus
from nodeyard.apiserver.kinds.validation import choice_errors, duplicates, faults_at
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, duplicate, index, invalid, not_supported, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import dns_1035_faults, qualified_name_faults, subdomain_faults
from nodeyard.kube.selectors import object_errors

_REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge"]
_IDENTIFIER = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "namespace", "null", "package", "return", "true", "var", "void", "while",
    )
)  # fmt: skip
_NOTHING_TO_DO = "validations or auditAnnotations must contain at least one item"
_UNSET = "<unset>"
_METADATA = ("deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences")


def _param_kind_errors(kind: Object) -> list[FieldError]:
    path, given, name = "spec.paramKind", kind.get("apiVersion", ""), kind.get("kind", "")
    errors: list[FieldError] = []
    if not given:
        errors.append(required(f"{path}.apiVersion"))
    elif given.count("/") > 1:
        errors.append(invalid(f"{path}.apiVersion", given, f"unexpected GroupVersion string: {given}"))
    else:
        group, _, version = given.rpartition("/")
        if group and (faults := subdomain_faults(group)):
            errors.append(invalid(f"{path}.apiVersion", group, ",".join(faults)))
        if not version:
            errors.append(invalid(f"{path}.apiVersion", given, "version must be specified"))
        elif faults := dns_1035_faults(version):
            errors.append(invalid(f"{path}.apiVersion", version, ",".join(faults)))
    if not name:
        errors.append(required(f"{path}.kind"))
    elif faults := dns_1035_faults(name.lower()):
        detail = "may have mixed case, but should otherwise match: " + ",".join(faults)
        errors.append(invalid(f"{path}.kind", name, detail))
    return errors


def _constraint_errors(constraints: Object | None) -> list[FieldError]:
    if constraints is None:
        return [required("spec.matchConstraints")]
    errors = match_errors(constraints, "spec.matchConstraints")
    if not constraints.get("resourceRules"):
        errors.append(required("spec.matchConstraints.resourceRules"))
    return errors


def match_errors(resources: Object, path: str) -> list[FieldError]:
    errors = choice_errors(f"{path}.matchPolicy", resources.get("matchPolicy"), "Equivalent", "Exact")
    for field in ("namespaceSelector", "objectSelector"):
        errors += object_errors(resources.get(field), f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for place, rule in enumerate(resources.get(field) or ()):
            where = index(f"{path}.{field}", place)
            errors += resource_name_errors(rule.get("resourceNames") or (), f"{where}.resourceNames")
            errors += rule_errors(rule, where)
    return errors


def _variable_errors(variable: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    name = variable.get("name", "")
    if not name.strip():
        errors.append(required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        errors.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not variable.get("expression", "").strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    return errors


def _validation_errors(validation: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    message, wording = validation.get("message", ""), validation.get("messageExpression", "")
    if not validation.get("expression", "").strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    if wording and not wording.strip():
        errors.append(invalid(f"{path}.messageExpression", wording, "must be non-empty if specified"))
    if message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    if validation.get("reason") is not None and validation["reason"] not in _REASONS:
        errors.append(not_supported(f"{path}.reason", validation["reason"], _REASONS))
    return errors


def _annotation_errors(annotations: list[Object], policy: str) -> list[FieldError]:
    errors: list[FieldError] = []
    repeated = duplicates(annotation.get("key", "") for annotation in annotations)
    for place, annotation in enumerate(annotations):
        path, key = index("spec.auditAnnotations", place), annotation.get("key", "")
        errors += faults_at(f"{path}.key", f"{policy}/{key}", qualified_name_faults)
        if not annotation.get("valueExpression", "").strip():
            errors.append(required(f"{path}.valueExpression", "valueExpression is not specified"))
        if place in repeated:
            errors.append(duplicate(f"{path}.key", key))
    return errors


class ValidatingAdmissionPolicyStrategy(WithStatus):
    definition = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy"
    plural = "validatingadmissionpolicies"
    namespaced = False
    categories = ("api-extensions",)
    defaults = {
        "io.k8s.api.admissionregistration.v1.MatchResources": filler(MATCH_DEFAULTS),
        "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations": filler({"scope": "*"}),
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec": filler({"failurePolicy": "Fail"}),
    }
    columns = (
        NAME,
        number_column("Validations", "How many expressions it checks."),
        text_column("ParamKind", "The kind of its parameters."),
        AGE,
    )
    allows_unconditional_update = False

    def reset_fields(self, subresource: str) -> Paths:
        return (("spec",), ("metadata",)) if subresource == "status" else (("status",),)

    def prepare_status(self, new: Object, old: Object) -> Object:
        return keep_metadata(super().prepare_status(new, old), old, *_METADATA)

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        if spec.get("failurePolicy") is None:
            errors.append(required("spec.failurePolicy"))
        else:
            errors += choice_errors("spec.failurePolicy", spec["failurePolicy"], "Fail", "Ignore")
        if spec.get("paramKind") is not None:
            errors += _param_kind_errors(spec["paramKind"])
        errors += _constraint_errors(spec.get("matchConstraints"))
        errors += condition_errors(spec.get("matchConditions") or [], "spec.matchConditions")
        for place, variable in enumerate(spec.get("variables") or ()):
            errors += _variable_errors(variable, index("spec.variables", place))
        validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
        if not validations and not annotations:
            fields = ("validations", "auditAnnotations")
            return errors + [required(f"spec.{field}", _NOTHING_TO_DO) for field in fields]
        for place, validation in enumerate(validations):
            errors += _validation_errors(validation, index("spec.validations", place))
        return errors + _annotation_errors(annotations, meta.name(obj))

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new) if new.get("spec") != old.get("spec") else []

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec = spec_of(obj)
        kind = spec.get("paramKind")
        shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET
        return [name_of(obj), len(spec.get("validations") or ()), shown, age_of(obj, now)]
