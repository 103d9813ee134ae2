"""Roles, ClusterRoles and their bindings."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import AGE, CREATED_AT, NAME, age_of, created_cells, name_of, text_column
from nodeyard.apiserver.kinds.edits import fill
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.kinds.validation import (
    faults_at,
    path_segment_faults,
    raw_json,
    subdomain_errors_at,
    unsupported,
)
from nodeyard.apiserver.rbac.names import GROUP
from nodeyard.kube.fields import FieldError, index, invalid, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import object_errors


def _role_errors(obj: Object, *, is_cluster: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, rule in enumerate(obj.get("rules") or ()):
        errors += _rule_errors(rule, index("rules", place), is_cluster=is_cluster)
    if is_cluster and obj.get("aggregationRule") is not None:
        errors += _aggregation_errors(obj["aggregationRule"])
    return errors


def _rule_errors(rule: Object, path: str, *, is_cluster: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if not is_cluster:
            detail = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, detail))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, detail))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def _aggregation_errors(aggregation: Object) -> list[FieldError]:
    path = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        return [required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    errors: list[FieldError] = []
    for place, selector in enumerate(selectors):
        found = object_errors(selector, index(path, place))
        errors += found
        if found:
            errors.append(invalid(index(path, place), None, "invalid label selector."))
    return errors


def _binding_errors(obj: Object, *, is_cluster: bool) -> list[FieldError]:
    reference = obj.get("roleRef") or {}
    errors: list[FieldError] = []
    if reference.get("apiGroup") != GROUP:
        errors.append(unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), GROUP))
    kinds = ("ClusterRole",) if is_cluster else ("Role", "ClusterRole")
    if reference.get("kind") not in kinds:
        errors.append(unsupported("roleRef.kind", reference.get("kind", ""), *kinds))
    if not reference.get("name"):
        errors.append(required("roleRef.name"))
    else:
        errors += faults_at("roleRef.name", reference["name"], path_segment_faults)
    for place, subject in enumerate(obj.get("subjects") or ()):
        errors += _subject_errors(subject, index("subjects", place), needs_namespace=is_cluster)
    return errors


def _subject_errors(subject: Object, path: str, *, needs_namespace: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            errors += subdomain_errors_at(f"{path}.name", name)
        if group:
            errors.append(unsupported(f"{path}.apiGroup", group, ""))
        if needs_namespace and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(unsupported(f"{path}.apiGroup", group, GROUP))
    else:
        errors.append(unsupported(f"{path}.kind", kind, "ServiceAccount", "User", "Group"))
    return errors


def _with_role_group(obj: Object) -> Object:
    reference = obj.get("roleRef") or {}
    return obj if reference.get("apiGroup") else {**obj, "roleRef": {**reference, "apiGroup": GROUP}}


def _with_group(obj: Object) -> Object:
    return fill(obj, {"apiGroup": GROUP}) if obj.get("kind") in ("User", "Group") else obj


def _subject_name(subject: Object) -> str:
    named = str(subject.get("name", ""))
    return f"{subject['namespace']}/{named}" if subject.get("namespace") else named


class _Rbac(BuiltIn):
    """Takes any name that fits into a URL."""

    allows_create_on_update = True

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)


class RoleStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.Role"
    plural = "roles"
    columns = (NAME, CREATED_AT)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return _role_errors(obj, is_cluster=not self.namespaced)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return created_cells(obj)


class ClusterRoleStrategy(RoleStrategy):
    definition = "io.k8s.api.rbac.v1.ClusterRole"
    plural = "clusterroles"
    namespaced = False


class RoleBindingStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.RoleBinding"
    plural = "rolebindings"
    defaults = {"io.k8s.api.rbac.v1.RoleBinding": _with_role_group, "io.k8s.api.rbac.v1.Subject": _with_group}
    columns = (
        NAME,
        text_column("Role", "The role that is granted."),
        AGE,
        text_column("Users", "Users it is granted to.", wide=True),
        text_column("Groups", "Groups it is granted to.", wide=True),
        text_column("ServiceAccounts", "Service accounts it is granted to.", wide=True),
    )

    def validate_create(self, obj: Object) -> list[FieldError]:
        return _binding_errors(obj, is_cluster=not self.namespaced)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate_create(new)
        reference = new.get("roleRef") or {}
        if reference != old.get("roleRef"):
            shown = {"APIGroup": reference.get("apiGroup", ""), "Kind": reference.get("kind", "")}
            shown["Name"] = reference.get("name", "")
            errors.append(invalid("roleRef", raw_json(shown), "cannot change roleRef"))
        return errors

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        reference = obj.get("roleRef") or {}
        by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
        for subject in obj.get("subjects") or ():
            by_kind.setdefault(subject.get("kind", ""), []).append(_subject_name(subject))
        return [
            name_of(obj),
            f"{reference.get('kind', '')}/{reference.get('name', '')}",
            age_of(obj, now),
            ", ".join(by_kind["User"]),
            ", ".join(by_kind["Group"]),
            ", ".join(by_kind["ServiceAccount"]),
        ]


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    definition = "io.k8s.api.rbac.v1.ClusterRoleBinding"
    plural = "clusterrolebindings"
    namespaced = False
    defaults = {"io.k8s.api.rbac.v1.ClusterRoleBinding": _with_role_group}
