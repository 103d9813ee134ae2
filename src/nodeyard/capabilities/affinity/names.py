"""All strings of affinity, each once: those of CozyStack and Flux, which are their interface, and ours."""

from __future__ import annotations

from typing import Final

CAPABILITY: Final = "affinity"
MANAGER: Final = "nodeyard-affinity"

# CozyStack
GROUP: Final = "cozystack.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CLASS_KIND: Final = "AffinityClass"
CLASS_PLURAL: Final = "affinityclasses"
DEFINITION_KIND: Final = "ApplicationDefinition"
DEFINITION_PLURAL: Final = "applicationdefinitions"

APPS_GROUP: Final = "apps.cozystack.io"
APPS_API_VERSION: Final = f"{APPS_GROUP}/{VERSION}"
TENANT_KIND: Final = "Tenant"
TENANT_PLURAL: Final = "tenants"

APPLICATION_KIND: Final = "apps.cozystack.io/application.kind"
APPLICATION_GROUP: Final = "apps.cozystack.io/application.group"
APPLICATION_NAME: Final = "apps.cozystack.io/application.name"
AFFINITY_CLASS: Final = "apps.cozystack.io/affinity-class"
"""Label of a pod, and of a HelmRelease, where it only shows the class unless an APIService serves Applications."""
PREVIOUS_CLASS: Final = "apps.cozystack.io/previous-affinity-class"
"""Label of a HelmRelease during a change of class: the previous classes, joined by `_`, which pods may have until the
release is ready."""
MANAGED: Final = "internal.cozystack.io/managed-by-cozystack"
TENANT_RESOURCE: Final = "internal.cozystack.io/tenantresource"
USER_KEY_PREFIX: Final = "apps.cozystack.io-"
"""Prefix of a user's label and annotation keys on a HelmRelease, so that users cannot forge keys of the platform."""
SYSTEM_NAMESPACE: Final = "cozystack.io/system"
"""Label of a Namespace: if `true`, its pods are never checked."""

TENANT_ROOT: Final = "tenant-root"
ROOT_TENANT: Final = "root"
TENANT_PREFIX: Final = "tenant-"
ANCESTOR_PREFIX: Final = "tenant.cozystack.io/"
NAMESPACE_PREFIX: Final = "namespace.cozystack.io/"
PLATFORM_NAMESPACE: Final = "cozy-system"
VALUES_SECRET: Final = "cozystack-values"
VALUES_KEY: Final = "values.yaml"
FLUX_WATCH: Final = "reconcile.fluxcd.io/watch"
CLUSTER_VALUES: Final = "_cluster"
NAMESPACE_VALUES: Final = "_namespace"
SCHEDULING_VALUES: Final = "_scheduling"
CLASS_FIELD: Final = "affinityClass"
"""Field of an application's spec."""
RESERVED_PREFIX: Final = "_"
"""Prefix of keys in an application's spec that are reserved for the platform."""

# Flux
FLUX_GROUP: Final = "helm.toolkit.fluxcd.io"
FLUX_VERSION: Final = "v2"
FLUX_API_VERSION: Final = f"{FLUX_GROUP}/{FLUX_VERSION}"
RELEASE_KIND: Final = "HelmRelease"
RELEASE_PLURAL: Final = "helmreleases"
FLUX_NAME: Final = "helm.toolkit.fluxcd.io/name"
"""Label that Flux sets on what it installs: the name of the HelmRelease, in the object's namespace."""
SHARDING_KEY: Final = "sharding.fluxcd.io/key"
"""Label of a HelmRelease that the platform may set and the operator preserves."""

# ours
CLASS_RECORD: Final = "nodeyard.dev/affinity-class-record"
"""Annotation of an application: its class, written by the operator only (`planning.class_record`)."""
CLASS_SOURCE: Final = "nodeyard.dev/affinity-class-source"
"""Annotation of a HelmRelease: the source of its class. A class from a default stays when the default changes."""
EXPLICIT: Final = "explicit"
DEFAULT: Final = "default"
NONE: Final = "none"
"""Source of an application that had no default: it keeps no class if a default is set later."""
ENFORCEMENT: Final = "nodeyard.dev/affinity-enforcement"
"""Label of a Namespace: a weaker enforcement for its pods, if the class permits it."""
TENANT: Final = "nodeyard.dev/tenant"
"""Annotation of a Namespace that the operator created: the uid of its Tenant."""
DECLARED_BY: Final = "nodeyard.dev/application-definition"
"""Label of a CRD that the operator created: its ApplicationDefinition."""
CLOSED_AT: Final = "nodeyard.dev/closed-at"
"""Annotation of a CRD before its deletion: the time since when it rejects new objects."""
CLASS_FINALIZER: Final = "nodeyard.dev/affinity-class"
TENANT_FINALIZER: Final = "nodeyard.dev/tenant"
DEFINITION_FINALIZER: Final = "nodeyard.dev/application-definition"
TRUE: Final = "true"

EXEMPT_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
"""Namespaces that are never checked, in addition to those that all webhooks exclude."""

PLACEMENT: Final = "placement"
"""Name of the webhook that checks pods."""

# workqueue keys
TENANTS_KEY: Final = "tenants"
"""All Tenants are planned together: they are one tree."""
CLASS_KEY_PREFIX: Final = "class/"
DEFINITION_KEY_PREFIX: Final = "definition/"
APPLICATION_KEY_PREFIX: Final = "application/"
POD_KEY_PREFIX: Final = "pod/"

# indexes
BY_CLASS: Final = "class"
"""HelmReleases, Tenants and applications by their classes."""
BY_NAMESPACE: Final = "namespace"
BY_APPLICATION: Final = "application"
BY_RELEASE: Final = "release"
"""Applications by the HelmRelease that their record names."""
BY_SHAPE: Final = "shape"
"""Pods by class and by the fields that decide their placement: pods of one template have the same shape."""
SHAPES: Final = "shapes"
"""Aggregate of pods by class: one pod of each shape, and their number."""


def class_key(name: str) -> str:
    return f"{CLASS_KEY_PREFIX}{name}"


def definition_key(name: str) -> str:
    return f"{DEFINITION_KEY_PREFIX}{name}"


def pod_key(namespace: str, name: str) -> str:
    return f"{POD_KEY_PREFIX}{namespace}/{name}"


def application_key(kind: str, namespace: str, name: str) -> str:
    return f"{APPLICATION_KEY_PREFIX}{kind}/{namespace}/{name}"


def tenant_namespace(parent: str, name: str) -> str:
    """Return the namespace of a Tenant from the parent's namespace and its name."""
    if parent == TENANT_ROOT:
        return TENANT_ROOT if name == ROOT_TENANT else f"{TENANT_PREFIX}{name}"
    return f"{parent}-{name}"
