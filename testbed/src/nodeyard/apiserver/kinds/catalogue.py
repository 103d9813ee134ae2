"""The built-in kinds: one row each, and the `Resource` made from it."""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.apiserver.kinds.compiler import schema
from nodeyard.apiserver.kinds.openapi import reference
from nodeyard.apiserver.kinds.strategies import (
    admission,
    batch,
    budgets,
    configuration,
    events,
    extensions,
    identities,
    leases,
    namespaces,
    nodes,
    pods,
    registrations,
    services,
    workloads,
)
from nodeyard.apiserver.kinds.strategies.base import BuiltIn
from nodeyard.apiserver.kinds.table import struct_name
from nodeyard.apiserver.resources import Resource, Scale, Version

_REPLICAS = Scale(".spec.replicas", ".status.replicas", ".spec.selector")


@dataclass(frozen=True, slots=True)
class Row:
    """What discovery says of a kind, and its strategy."""

    group: str
    plural: str
    strategy: type[BuiltIn]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    scale: Scale | None = None


_ALL = ("all",)
_EXTENSION = ("api-extensions",)
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

ROWS: tuple[Row, ...] = (
    Row("", "namespaces", namespaces.NamespaceStrategy, False, ("ns",), has_status=True),
    Row("", "nodes", nodes.NodeStrategy, False, ("no",), has_status=True),
    Row("", "pods", pods.PodStrategy, True, ("po",), _ALL, has_status=True),
    Row("", "podtemplates", pods.PodTemplateStrategy),
    Row("", "secrets", configuration.SecretStrategy),
    Row("", "configmaps", configuration.ConfigMapStrategy, True, ("cm",)),
    Row("", "services", services.ServiceStrategy, True, ("svc",), _ALL, has_status=True),
    Row("", "serviceaccounts", identities.ServiceAccountStrategy, True, ("sa",)),
    Row("", "events", events.CoreEventStrategy, True, ("ev",)),
    Row("events.k8s.io", "events", events.EventStrategy, True, ("ev",)),
    Row("coordination.k8s.io", "leases", leases.LeaseStrategy),
    Row("apps", "controllerrevisions", workloads.ControllerRevisionStrategy),
    Row("apps", "daemonsets", workloads.DaemonSetStrategy, True, ("ds",), _ALL, has_status=True),
    Row("apps", "deployments", workloads.DeploymentStrategy, True, ("deploy",), _ALL, True, _REPLICAS),
    Row("apps", "replicasets", workloads.ReplicaSetStrategy, True, ("rs",), _ALL, True, _REPLICAS),
    Row("apps", "statefulsets", workloads.StatefulSetStrategy, True, ("sts",), _ALL, True, _REPLICAS),
    Row("batch", "cronjobs", batch.CronJobStrategy, True, ("cj",), _ALL, has_status=True),
    Row("batch", "jobs", batch.JobStrategy, True, (), _ALL, has_status=True),
    Row("policy", "poddisruptionbudgets", budgets.BudgetStrategy, True, ("pdb",), has_status=True),
    Row(_RBAC, "clusterroles", identities.ClusterRoleStrategy, False),
    Row(_RBAC, "clusterrolebindings", identities.ClusterRoleBindingStrategy, False),
    Row(_RBAC, "roles", identities.RoleStrategy),
    Row(_RBAC, "rolebindings", identities.RoleBindingStrategy),
    Row(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        extensions.DefinitionStrategy,
        False,
        ("crd", "crds"),
        _EXTENSION,
        has_status=True,
    ),
    Row(
        "apiregistration.k8s.io",
        "apiservices",
        registrations.APIServiceStrategy,
        False,
        (),
        _EXTENSION,
        has_status=True,
    ),
    Row(_ADMISSION, "mutatingwebhookconfigurations", admission.MutatingWebhookStrategy, False, (), _EXTENSION),
    Row(_ADMISSION, "validatingadmissionpolicies", admission.PolicyStrategy, False, (), _EXTENSION, has_status=True),
    Row(
        _ADMISSION,
        "validatingadmissionpolicybindings",
        admission.PolicyBindingStrategy,
        False,
        (),
        _EXTENSION,
    ),
    Row(_ADMISSION, "validatingwebhookconfigurations", admission.ValidatingWebhookStrategy, False, (), _EXTENSION),
)


def resources() -> list[Resource]:
    """Every built-in resource that is stored, fresh for one server."""
    return [_resource(row, row.strategy()) for row in ROWS]


def _resource(row: Row, strategy: BuiltIn) -> Resource:
    definition = strategy.definition
    kind, version = struct_name(definition), "v1"
    typed = Version(
        version,
        schema(definition),
        openapi=reference(definition),
        columns=strategy.printer.columns,
        has_status=row.has_status,
        scale=row.scale,
    )
    return Resource(
        group=row.group,
        kind=kind,
        plural=row.plural,
        singular=kind.lower(),
        namespaced=row.namespaced,
        versions={version: typed},
        storage_version=version,
        strategy=strategy,
        short_names=row.short_names,
        categories=row.categories,
    )
