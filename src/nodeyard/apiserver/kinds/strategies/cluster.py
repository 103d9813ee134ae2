"""Everything that does not run: namespaces, services, configuration, identities, budgets, events."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.addresses import with_addresses, with_old_addresses
from nodeyard.apiserver.kinds.columns import cluster as columns
from nodeyard.apiserver.kinds.columns import events as event_columns
from nodeyard.apiserver.kinds.columns.printer import CREATED_AT
from nodeyard.apiserver.kinds.strategies.base import BuiltIn, WithStatus, keep, reader
from nodeyard.apiserver.kinds.validation import budgets, configuration, events, namespaces, roles, services
from nodeyard.apiserver.kinds.validation.syntax import path_segment_faults, service_name_faults
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults
from nodeyard.process.clock import rfc3339

FINALIZER = "kubernetes"


class NamespaceStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Namespace"
    printer = columns.NAMESPACE
    uses_generation = False
    has_own_field_labels = True
    returns_deleted = True
    fields = {"status.phase": reader("status", "phase")}

    def validate_name(self, name: str) -> list[str]:
        return label_faults(name)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        spec = obj.get("spec") or {}
        finalizers = list(dict.fromkeys([*(spec.get("finalizers") or ()), FINALIZER]))
        return {**obj, "spec": {**spec, "finalizers": finalizers}, "status": {"phase": "Active"}}

    def prepare_update(self, new: Object, old: Object) -> Object:
        return keep(keep(new, old, "status"), old, "spec")

    def prepare_delete(self, obj: Object, now: datetime) -> Object | None:
        """Deletion only begins here: the namespace controller empties it and then takes the finalizer away."""
        metadata, status = obj["metadata"], obj.get("status") or {}
        if not self.holds(obj) and not metadata.get("finalizers"):
            return None
        if "deletionTimestamp" not in metadata:
            metadata = {**metadata, "deletionTimestamp": rfc3339(now)}
        return {**obj, "metadata": metadata, "status": {**status, "phase": "Terminating"}}

    def holds(self, obj: Object) -> bool:
        return bool((obj.get("spec") or {}).get("finalizers"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return namespaces.errors(obj)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return namespaces.status_errors(new, old)


class SecretStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.Secret"
    printer = columns.SECRET
    has_own_field_labels = True
    fields = {"type": reader("type")}

    def validate_create(self, obj: Object) -> list[FieldError]:
        return configuration.secret_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return configuration.secret_update_errors(new, old)


class ConfigMapStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.ConfigMap"
    printer = columns.CONFIG_MAP

    def validate_create(self, obj: Object) -> list[FieldError]:
        return configuration.config_map_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return configuration.config_map_update_errors(new, old)


class ServiceStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Service"
    printer = columns.SERVICE
    uses_generation = False
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {"spec.clusterIP": reader("spec", "clusterIP"), "spec.type": reader("spec", "type")}

    def validate_name(self, name: str) -> list[str]:
        return service_name_faults(name)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return with_addresses(super().prepare_create(obj, now))

    def prepare_update(self, new: Object, old: Object) -> Object:
        return with_addresses(with_old_addresses(super().prepare_update(new, old), old))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return services.errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return services.update_errors(new, old)


class ServiceAccountStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.ServiceAccount"


class BudgetStrategy(WithStatus):
    definition = "io.k8s.api.policy.v1.PodDisruptionBudget"
    printer = columns.BUDGET
    allows_unconditional_update = False

    def validate_create(self, obj: Object) -> list[FieldError]:
        return budgets.errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return budgets.errors(new)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return budgets.status_errors(new)


class _Rbac(BuiltIn):
    """Names of roles and bindings may be anything that fits into a URL."""

    allows_create_on_update = True

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)


class RoleStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.Role"
    printer = CREATED_AT

    def validate_create(self, obj: Object) -> list[FieldError]:
        return roles.role_errors(obj, is_cluster=False)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return roles.role_errors(new, is_cluster=False)


class ClusterRoleStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.ClusterRole"
    printer = CREATED_AT

    def validate_create(self, obj: Object) -> list[FieldError]:
        return roles.role_errors(obj, is_cluster=True)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return roles.role_errors(new, is_cluster=True)


class RoleBindingStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.RoleBinding"
    printer = columns.BINDING

    def validate_create(self, obj: Object) -> list[FieldError]:
        return roles.binding_errors(obj, is_cluster=False)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return roles.binding_update_errors(new, old, is_cluster=False)


class ClusterRoleBindingStrategy(_Rbac):
    definition = "io.k8s.api.rbac.v1.ClusterRoleBinding"
    printer = columns.BINDING

    def validate_create(self, obj: Object) -> list[FieldError]:
        return roles.binding_errors(obj, is_cluster=True)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return roles.binding_update_errors(new, old, is_cluster=True)


_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class CoreEventStrategy(BuiltIn):
    """Old enough that its name may be anything."""

    definition = "io.k8s.api.core.v1.Event"
    printer = event_columns.CORE_EVENT
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {
        **{f"involvedObject.{field}": reader("involvedObject", field) for field in _ABOUT},
        "reason": reader("reason"),
        "reportingComponent": reader("reportingComponent"),
        "source": lambda obj: reader("source", "component")(obj) or reader("reportingComponent")(obj),
        "type": reader("type"),
    }

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return events.core_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return events.core_errors(new)


class EventStrategy(BuiltIn):
    definition = "io.k8s.api.events.v1.Event"
    printer = event_columns.EVENT
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {
        **{f"regarding.{field}": reader("regarding", field) for field in _ABOUT},
        "reason": reader("reason"),
        "reportingController": reader("reportingController"),
        "type": reader("type"),
    }

    def validate_create(self, obj: Object) -> list[FieldError]:
        return events.errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return events.update_errors(new, old)
