"""ValidatingWebhookConfigurations and MutatingWebhookConfigurations."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from nodeyard.apiserver.kinds.admissionregistration.rules import MATCH_DEFAULTS, condition_errors, rule_errors
from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of, number_column
from nodeyard.apiserver.kinds.edits import filler
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.kinds.validation import choice_errors, duplicates, faults_at, range_fault, subdomain_errors_at
from nodeyard.kube.fields import FieldError, duplicate, index, invalid, required
from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.kube.names import dns_1035_faults, subdomain_faults
from nodeyard.kube.selectors import object_errors

_WEBHOOK_DEFAULTS: Object = {**MATCH_DEFAULTS, "failurePolicy": "Fail", "timeoutSeconds": 10}
_REVIEWS = ("v1", "v1beta1")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_FORMAT = "; desired format: https://host[/path]"


def _configuration_errors(obj: Object, *, is_mutating: bool) -> list[FieldError]:
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


class ValidatingWebhookConfigurationStrategy(BuiltIn):
    definition = "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration"
    plural = "validatingwebhookconfigurations"
    namespaced = False
    categories = ("api-extensions",)
    defaults = {
        "io.k8s.api.admissionregistration.v1.RuleWithOperations": filler({"scope": "*"}),
        "io.k8s.api.admissionregistration.v1.ServiceReference": filler({"port": 443}),
        "io.k8s.api.admissionregistration.v1.ValidatingWebhook": filler(_WEBHOOK_DEFAULTS),
    }
    columns = (NAME, number_column("Webhooks", "How many webhooks it registers."), AGE)
    uses_generation = True
    allows_unconditional_update = False
    is_mutating = False

    def changes_generation(self, new: Object, old: Object) -> bool:
        return not json_equal(new.get("webhooks"), old.get("webhooks"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return _configuration_errors(obj, is_mutating=self.is_mutating)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return [name_of(obj), len(obj.get("webhooks") or ()), age_of(obj, now)]


class MutatingWebhookConfigurationStrategy(ValidatingWebhookConfigurationStrategy):
    definition = "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration"
    plural = "mutatingwebhookconfigurations"
    defaults = {
        "io.k8s.api.admissionregistration.v1.MutatingWebhook": filler(
            {**_WEBHOOK_DEFAULTS, "reinvocationPolicy": "Never"}
        )
    }
    is_mutating = True
