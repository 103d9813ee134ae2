"""Webhook configurations, and the rules that policies share with them.

Whether their expressions compile is found out by admission, which has CEL.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from nodeyard.apiserver.kinds.validation import (
    choice_errors,
    dns_1035_faults,
    duplicates,
    faults_at,
    path_segment_faults,
    range_fault,
    subdomain_errors_at,
)
from nodeyard.kube.fields import FieldError, duplicate, index, invalid, not_supported, required, too_many
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults, subdomain_faults
from nodeyard.kube.selectors import object_errors

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_REVIEWS = ("v1", "v1beta1")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_CONDITIONS_MAX = 64
_FORMAT = "; desired format: https://host[/path]"


def configuration_errors(obj: Object, *, is_mutating: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    hooks = obj.get("webhooks") or []
    repeated = duplicates(hook.get("name", "") for hook in hooks)
    for place, hook in enumerate(hooks):
        path = index("webhooks", place)
        errors += _webhook_errors(hook, path, is_mutating=is_mutating)
        errors += _review_version_errors(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")
        if place in repeated and hook.get("name"):
            errors.append(duplicate(f"{path}.name", hook["name"]))
    return errors


def _webhook_errors(hook: Object, path: str, *, is_mutating: bool) -> list[FieldError]:
    errors = _name_errors(hook.get("name", ""), f"{path}.name")
    for place, rule in enumerate(hook.get("rules") or ()):
        errors += rule_errors(rule, index(f"{path}.rules", place))
    errors += choice_errors(f"{path}.failurePolicy", hook.get("failurePolicy"), "Fail", "Ignore")
    errors += choice_errors(f"{path}.matchPolicy", hook.get("matchPolicy"), "Equivalent", "Exact")
    effects = hook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    else:
        errors += choice_errors(f"{path}.sideEffects", effects, *_SIDE_EFFECTS)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", seconds, detail))
    for field in ("namespaceSelector", "objectSelector"):
        errors += object_errors(hook.get(field), f"{path}.{field}")
    errors += _client_errors(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    if is_mutating:
        errors += choice_errors(f"{path}.reinvocationPolicy", hook.get("reinvocationPolicy"), "IfNeeded", "Never")
    return errors + condition_errors(hook.get("matchConditions") or [], f"{path}.matchConditions")


def _name_errors(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = subdomain_errors_at(path, name)
    if not errors and name.count(".") < 2:
        errors.append(invalid(path, name, "should be a domain with at least three segments separated by dots"))
    return errors


def _review_version_errors(versions: list[str], path: str) -> list[FieldError]:
    if not versions:
        return [required(path, f"must specify one of {', '.join(_REVIEWS)}")]
    errors: list[FieldError] = []
    repeated = duplicates(versions)
    for place, version in enumerate(versions):
        if place in repeated:
            errors.append(invalid(index(path, place), version, "duplicate version"))
        else:
            errors += faults_at(index(path, place), version, dns_1035_faults)
    if not set(versions) & set(_REVIEWS):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}"))
    return errors


# rules


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


# whom to call


def _client_errors(config: Object, path: str) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _url_errors(url, f"{path}.url")
    return _service_errors(service or {}, f"{path}.service")


def _url_errors(url: str, path: str) -> list[FieldError]:
    parts = urlsplit(url)
    errors: list[FieldError] = []
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORMAT}"))
    user, at, host = parts.netloc.rpartition("@")
    if not host:
        errors.append(invalid(path, host, f"host must be specified{_FORMAT}"))
    if at:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _service_errors(service: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{field}") for field in ("name", "namespace") if not service.get(field)]
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        errors.append(invalid(f"{path}.port", port, f"port is not valid: {range_fault(1, 65535)}"))
    target = service.get("path")
    return errors if target in (None, "/") else errors + _path_errors(target, f"{path}.path")


def _path_errors(target: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not target.startswith("/"):
        errors.append(invalid(path, target, "must start with a '/'"))
    segments = target[1:].removesuffix("/").split("/")
    for place, segment in enumerate(segments):
        if not segment:
            errors.append(invalid(path, target, f"segment[{place}] may not be empty"))
            break
        errors += [invalid(path, target, f"segment[{place}]: {fault}") for fault in subdomain_faults(segment)]
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
