"""The list of built-in kinds that are stored, with their defaults and resources."""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.apiserver.crds.strategy import CustomResourceDefinitionStrategy
from nodeyard.apiserver.kinds.admissionregistration.validating_admission_policy import ValidatingAdmissionPolicyStrategy
from nodeyard.apiserver.kinds.admissionregistration.validating_admission_policy_binding import (
    ValidatingAdmissionPolicyBindingStrategy,
)
from nodeyard.apiserver.kinds.admissionregistration.webhook_configuration import (
    MutatingWebhookConfigurationStrategy,
    ValidatingWebhookConfigurationStrategy,
)
from nodeyard.apiserver.kinds.api_service import APIServiceStrategy
from nodeyard.apiserver.kinds.compiler import schema
from nodeyard.apiserver.kinds.config_map import ConfigMapStrategy
from nodeyard.apiserver.kinds.event import CoreEventStrategy, EventStrategy
from nodeyard.apiserver.kinds.lease import LeaseStrategy
from nodeyard.apiserver.kinds.namespace import NamespaceStrategy
from nodeyard.apiserver.kinds.node import NodeStrategy
from nodeyard.apiserver.kinds.openapi import reference
from nodeyard.apiserver.kinds.pod.strategy import PodStrategy
from nodeyard.apiserver.kinds.pod_disruption_budget import PodDisruptionBudgetStrategy
from nodeyard.apiserver.kinds.pod_template import PodTemplateStrategy
from nodeyard.apiserver.kinds.rbac import (
    ClusterRoleBindingStrategy,
    ClusterRoleStrategy,
    RoleBindingStrategy,
    RoleStrategy,
)
from nodeyard.apiserver.kinds.secret import SecretStrategy
from nodeyard.apiserver.kinds.service import ServiceStrategy
from nodeyard.apiserver.kinds.service_account import ServiceAccountStrategy
from nodeyard.apiserver.kinds.strategy import BuiltIn, Default
from nodeyard.apiserver.kinds.table import definitions
from nodeyard.apiserver.kinds.workloads.controller_revision import ControllerRevisionStrategy
from nodeyard.apiserver.kinds.workloads.cron_job import CronJobStrategy
from nodeyard.apiserver.kinds.workloads.daemon_set import DaemonSetStrategy
from nodeyard.apiserver.kinds.workloads.deployment import DeploymentStrategy
from nodeyard.apiserver.kinds.workloads.job import JobStrategy
from nodeyard.apiserver.kinds.workloads.replica_set import ReplicaSetStrategy
from nodeyard.apiserver.kinds.workloads.stateful_set import StatefulSetStrategy
from nodeyard.apiserver.resources import Resource, Version

KINDS: tuple[type[BuiltIn], ...] = (
    NamespaceStrategy,
    NodeStrategy,
    PodStrategy,
    PodTemplateStrategy,
    SecretStrategy,
    ConfigMapStrategy,
    ServiceStrategy,
    ServiceAccountStrategy,
    CoreEventStrategy,
    EventStrategy,
    LeaseStrategy,
    ControllerRevisionStrategy,
    DaemonSetStrategy,
    DeploymentStrategy,
    ReplicaSetStrategy,
    StatefulSetStrategy,
    CronJobStrategy,
    JobStrategy,
    PodDisruptionBudgetStrategy,
    ClusterRoleStrategy,
    ClusterRoleBindingStrategy,
    RoleStrategy,
    RoleBindingStrategy,
    CustomResourceDefinitionStrategy,
    APIServiceStrategy,
    MutatingWebhookConfigurationStrategy,
    ValidatingAdmissionPolicyStrategy,
    ValidatingAdmissionPolicyBindingStrategy,
    ValidatingWebhookConfigurationStrategy,
)

DEFAULTS: Mapping[str, Default] = {
    definition: default for kind in KINDS for definition, default in kind.defaults.items()
}
"""Defaults by definition."""


def resources() -> list[Resource]:
    """Create every built-in resource that is stored, for one server."""
    return [_resource(kind()) for kind in KINDS]


def _resource(strategy: BuiltIn) -> Resource:
    (served,) = definitions()[strategy.definition]["x-kubernetes-group-version-kind"]
    version = Version(
        served["version"],
        schema(strategy.definition),
        openapi=reference(strategy.definition),
        columns=strategy.columns,
        has_status=strategy.has_status,
        scale=strategy.scale,
    )
    return Resource(
        group=served["group"],
        kind=served["kind"],
        plural=strategy.plural,
        singular=served["kind"].lower(),
        namespaced=strategy.namespaced,
        versions={version.name: version},
        storage_version=version.name,
        strategy=strategy,
        short_names=strategy.short_names,
        categories=strategy.categories,
    )
