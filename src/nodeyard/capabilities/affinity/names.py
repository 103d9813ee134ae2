"""Every key string of affinity, once: those of CozyStack and Flux, which are their interface, and ours."""

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
"""Label of a HelmRelease and of its pods."""
PREVIOUS_CLASS: Final = "apps.cozystack.io/previous-affinity-class"
"""Label of a HelmRelease whose application has changed its class: also accepted until the release is ready; several are
joined by `_`."""
MANAGED: Final = "internal.cozystack.io/managed-by-cozystack"
TENANT_RESOURCE: Final = "internal.cozystack.io/tenantresource"
USER_KEY_PREFIX: Final = "apps.cozystack.io-"
"""Before a user's own label and annotation keys on a HelmRelease, so that none of ours can be forged."""
SYSTEM_NAMESPACE: Final = "cozystack.io/system"
"""Label of a Namespace that is never checked, where it is `true`."""

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
RESERVED_PREFIX: Final = "_"
"""Keys of an application's spec that begin so are the platform's."""

# Flux
FLUX_GROUP: Final = "helm.toolkit.fluxcd.io"
FLUX_VERSION: Final = "v2"
FLUX_API_VERSION: Final = f"{FLUX_GROUP}/{FLUX_VERSION}"
RELEASE_KIND: Final = "HelmRelease"
RELEASE_PLURAL: Final = "helmreleases"
FLUX_NAME: Final = "helm.toolkit.fluxcd.io/name"
"""Label that Flux puts on what it installs: the HelmRelease, in the object's own namespace."""
SHARDING_KEY: Final = "sharding.fluxcd.io/key"
"""Label of a HelmRelease that the platform may set and that survives."""

# ours
CLASS_SOURCE: Final = "nodeyard.dev/affinity-class-source"
"""Annotation of a HelmRelease: where its class comes from; one from a default stays when the default changes."""
EXPLICIT: Final = "explicit"
DEFAULT: Final = "default"
NONE: Final = "none"
"""Of an application that got no class because there was no default: it keeps none when there comes one."""
ENFORCEMENT: Final = "nodeyard.dev/affinity-enforcement"
"""Label of a Namespace: a weaker enforcement for its pods, where the class permits it."""
TENANT: Final = "nodeyard.dev/tenant"
"""Annotation of a Namespace that we made: the uid of its Tenant."""
DECLARED_BY: Final = "nodeyard.dev/application-definition"
"""Label of a CRD that we made: the ApplicationDefinition it is of."""
CLOSED_AT: Final = "nodeyard.dev/closed-at"
"""Annotation of a CRD that we made and that is about to go: since when it takes no new objects."""
CLASS_FINALIZER: Final = "nodeyard.dev/affinity-class"
TENANT_FINALIZER: Final = "nodeyard.dev/tenant"
DEFINITION_FINALIZER: Final = "nodeyard.dev/application-definition"
TRUE: Final = "true"

EXEMPT_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
"""Never checked, beside those that every webhook of ours leaves out."""

PLACEMENT: Final = "placement"
PLACEMENT_TENANTS: Final = f"{PLACEMENT}-tenants"
"""The webhook that checks pods, and its entry for those of tenants."""

# keys of the queue
TENANTS_KEY: Final = "tenants"
"""All Tenants are planned together: they are one tree."""
CLASS_KEY_PREFIX: Final = "class/"
DEFINITION_KEY_PREFIX: Final = "definition/"
APPLICATION_KEY_PREFIX: Final = "application/"

# indexes of the cache
BY_CLASS: Final = "class"
"""HelmReleases, Tenants and applications by the classes they name."""
BY_NAMESPACE: Final = "namespace"
BY_APPLICATION: Final = "application"


def class_key(name: str) -> str:
    return f"{CLASS_KEY_PREFIX}{name}"


def definition_key(name: str) -> str:
    return f"{DEFINITION_KEY_PREFIX}{name}"


def application_key(kind: str, namespace: str, name: str) -> str:
    return f"{APPLICATION_KEY_PREFIX}{kind}/{namespace}/{name}"


def tenant_namespace(parent: str, name: str) -> str:
    """The namespace of a Tenant that lives in the parent's."""
    if parent == TENANT_ROOT:
        return TENANT_ROOT if name == ROOT_TENANT else f"{TENANT_PREFIX}{name}"
    return f"{parent}-{name}"
