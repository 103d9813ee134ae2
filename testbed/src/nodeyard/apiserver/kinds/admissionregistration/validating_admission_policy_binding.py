"""ValidatingAdmissionPolicyBindings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nodeyard.apiserver.kinds.admissionregistration.validating_admission_policy import match_errors
from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of, spec_of, text_column
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.kinds.validation import (
    duplicates,
    faults_at,
    path_segment_faults,
    subdomain_errors_at,
    unsupported,
)
from nodeyard.kube.fields import FieldError, duplicate, forbidden, index, invalid, not_supported, required
from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.kube.selectors import from_object, object_errors

_ACTIONS = ["Audit", "Deny", "Warn"]
_UNSET = "<unset>"


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


def _parameters(reference: Mapping[str, Any] | None) -> str:
    if reference and reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    if reference and reference.get("selector") is not None:
        return str(from_object(reference["selector"]))
    return _UNSET


class ValidatingAdmissionPolicyBindingStrategy(BuiltIn):
    definition = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding"
    plural = "validatingadmissionpolicybindings"
    namespaced = False
    categories = ("api-extensions",)
    columns = (
        NAME,
        text_column("PolicyName", "The policy it puts to use."),
        text_column("ParamRef", "The parameters it uses."),
        AGE,
    )
    uses_generation = True
    allows_unconditional_update = False

    def changes_generation(self, new: Object, old: Object) -> bool:
        return not json_equal(new.get("spec"), old.get("spec"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        name = spec.get("policyName", "")
        errors += subdomain_errors_at("spec.policyName", name) if name else [required("spec.policyName")]
        if spec.get("paramRef") is not None:
            errors += _param_ref_errors(spec["paramRef"], "spec.paramRef")
        if spec.get("matchResources") is not None:
            errors += match_errors(spec["matchResources"], "spec.matchResources")
        return errors + _action_errors(spec.get("validationActions") or [], "spec.validationActions")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec = spec_of(obj)
        return [name_of(obj), spec.get("policyName", ""), _parameters(spec.get("paramRef")), age_of(obj, now)]
