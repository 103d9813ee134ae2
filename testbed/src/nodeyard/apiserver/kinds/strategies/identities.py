"""Who may do what: service accounts, roles and bindings."""

from __future__ import annotations

from nodeyard.apiserver.kinds import rbac as roles
from nodeyard.apiserver.kinds.columns import identities as columns
from nodeyard.apiserver.kinds.printer import CREATED_AT
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.kinds.validation import path_segment_faults
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object


class ServiceAccountStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.ServiceAccount"
    plural = "serviceaccounts"
    short_names = ("sa",)


class _Rbac(BuiltIn):
    """Names of roles and bindings may be anything that fits into a URL."""

    allows_create_on_update = True

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)


class RoleStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.Role"
    plural = "roles"
    printer = CREATED_AT

    def validate_create(self, obj: Object) -> list[FieldError]:
        return roles.role_errors(obj, is_cluster=False)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return roles.role_errors(new, is_cluster=False)


class ClusterRoleStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.ClusterRole"
    plural = "clusterroles"
    namespaced = False
    printer = CREATED_AT

    def validate_create(self, obj: Object) -> list[FieldError]:
        return roles.role_errors(obj, is_cluster=True)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return roles.role_errors(new, is_cluster=True)


class RoleBindingStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.RoleBinding"
    plural = "rolebindings"
    printer = columns.BINDING

    def validate_create(self, obj: Object) -> list[FieldError]:
        return roles.binding_errors(obj, is_cluster=False)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return roles.binding_update_errors(new, old, is_cluster=False)


class ClusterRoleBindingStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.ClusterRoleBinding"
    plural = "clusterrolebindings"
    namespaced = False
    printer = columns.BINDING

    def validate_create(self, obj: Object) -> list[FieldError]:
        return roles.binding_errors(obj, is_cluster=True)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return roles.binding_update_errors(new, old, is_cluster=True)
