"""Match rules and conditions, which webhook configurations and policies have in common."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.apiserver.kinds.validation import duplicates, faults_at, path_segment_faults
from nodeyard.kube.fields import FieldError, duplicate, index, invalid, not_supported, required, too_many
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults

MATCH_DEFAULTS: Object = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_CONDITIONS_MAX = 64


def rule_errors(rule: Object, path: str) -> list[FieldError]:
    errors = _operation_errors(rule.get("operations") or [], f"{path}.operations")
    for field, noun in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        if not values:
            errors.append(required(f"{path}.{field}"))
        errors += _wildcard_errors(values, f"{path}.{field}", noun)
    for place, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            errors.append(required(index(f"{path}.apiVersions", place)))
    errors += _resource_errors(rule.get("resources") or [], f"{path}.resources")
    if rule.get("scope") is not None and rule["scope"] not in _SCOPES:
        errors.append(not_supported(f"{path}.scope", rule["scope"], list(_SCOPES)))
    return errors


def _operation_errors(operations: list[str], path: str) -> list[FieldError]:
    errors = [] if operations else [required(path)]
    errors += _wildcard_errors(operations, path, "operations")
    for place, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.append(not_supported(index(path, place), operation, list(_OPERATIONS)))
    return errors


def _wildcard_errors(values: list[str], path: str, noun: str) -> list[FieldError]:
    if len(values) < 2 or "*" not in values:
        return []
    return [invalid(path, values, f"if '*' is present, must not specify other {noun}")]


def _resource_errors(resources: list[str], path: str) -> list[FieldError]:
    errors = [] if resources else [required(path)]
    whole, everywhere = set[str](), set[str]()
    for place, given in enumerate(resources):
        where = index(path, place)
        if not given:
            errors.append(required(where))
        resource, slash, sub = given.partition("/")
        if not slash:
            continue
        if resource in whole:
            errors.append(invalid(where, given, f"if '{resource}/*' is present, must not specify {given}"))
        if sub in everywhere:
            errors.append(invalid(where, given, f"if '*/{sub}' is present, must not specify {given}"))
        if sub == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any("/" not in given and given != "*" for given in resources if given):
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, detail))
    return errors


# what both kinds of admission share


def condition_errors(conditions: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(conditions) > _CONDITIONS_MAX:
        errors.append(too_many(path, len(conditions), _CONDITIONS_MAX))
    names: set[str] = set()
    for place, condition in enumerate(conditions):
        where, name = index(path, place), condition.get("name", "")
        if not condition.get("expression", "").strip():
            errors.append(required(f"{where}.expression"))
        errors += faults_at(f"{where}.name", name, qualified_name_faults) if name else [required(f"{where}.name")]
        if name in names and name:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
    return errors


def resource_name_errors(names: Iterable[str], path: str) -> list[FieldError]:
    listed = list(names)
    repeated = duplicates(listed)
    errors: list[FieldError] = []
    for place, name in enumerate(listed):
        errors += faults_at(index(path, place), name, path_segment_faults)
        if place in repeated:
            errors.append(duplicate(index(path, place), name))
    return errors
