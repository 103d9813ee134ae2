"""ValidatingAdmissionPolicies and their bindings.

Whether their expressions compile is found out by admission, which has CEL.
"""

from __future__ import annotations

import re

from nodeyard.apiserver.kinds.admissionregistration.webhook_configuration import (
    condition_errors,
    resource_name_errors,
    rule_errors,
)
from nodeyard.apiserver.kinds.validation import (
    choice_errors,
    dns_1035_faults,
    duplicates,
    faults_at,
    path_segment_faults,
    subdomain_errors_at,
    unsupported,
)
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, duplicate, forbidden, index, invalid, not_supported, required
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults, subdomain_faults
from nodeyard.kube.selectors import object_errors

_REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge"]
_ACTIONS = ["Audit", "Deny", "Warn"]
_IDENTIFIER = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "namespace", "null", "package", "return", "true", "var", "void", "while",
    )
)  # fmt: skip
_NOTHING_TO_DO = "validations or auditAnnotations must contain at least one item"


def policy_errors(obj: Object) -> list[FieldError]:
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
    errors = _match_errors(constraints, "spec.matchConstraints")
    if not constraints.get("resourceRules"):
        errors.append(required("spec.matchConstraints.resourceRules"))
    return errors


def _match_errors(resources: Object, path: str) -> list[FieldError]:
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


def binding_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    name = spec.get("policyName", "")
    errors += subdomain_errors_at("spec.policyName", name) if name else [required("spec.policyName")]
    if spec.get("paramRef") is not None:
        errors += _param_ref_errors(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        errors += _match_errors(spec["matchResources"], "spec.matchResources")
    return errors + _action_errors(spec.get("validationActions") or [], "spec.validationActions")


def _param_ref_errors(reference: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    name, selector = reference.get("name", ""), reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        errors += faults_at(f"{path}.name", name, path_segment_faults)
        if selector is not None:
            errors.append(forbidden(f"{path}.name", exclusive))
    if selector is not None:
        errors += object_errors(selector, f"{path}.selector")
        if name:
            errors.append(forbidden(f"{path}.selector", exclusive))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        errors.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Deny", "Allow"):
        errors.append(unsupported(f"{path}.parameterNotFoundAction", action, "Deny", "Allow"))
    return errors


def _action_errors(actions: list[str], path: str) -> list[FieldError]:
    if not actions:
        return [required(path, "at least one validation action is required")]
    errors: list[FieldError] = []
    repeated = duplicates(actions)
    for place, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.append(not_supported(index(path, place), action, _ACTIONS))
        if place in repeated:
            errors.append(duplicate(index(path, place), action))
    if "Deny" in actions and "Warn" in actions:
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(invalid(path, actions, detail))
    return errors
