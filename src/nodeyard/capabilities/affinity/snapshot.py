"""Immutable input of the planners: one snapshot type for each kind of key.

    tenants                         the whole tree of Tenants, their Namespaces and values
    application/<Kind>/<ns>/<name>  one application, its definition, tenant, class and release
    definition/<name>               one ApplicationDefinition, the CRD that serves it
    class/<name>                    one AffinityClass, its matching nodes and its users
    pod/<namespace>/<name>          one pod with its owners and placement, only for `why`

Applications, HelmReleases, CRDs and Secrets are whole objects: fields and managedFields decide what an apply would
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy
from nodeyard.capabilities.affinity.planning.lineage import Lineage
from nodeyard.capabilities.affinity.planning.placement import Placement
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, ClassUser, Tenant
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace
from nodeyard.plan.model import ObjectRef


@dataclass(frozen=True)
class TenantsSnapshot:
    tenants: Sequence[Tenant]
    """All Tenants, by namespace and name."""
    classes: frozenset[str] = frozenset()
    """Names of the existing classes."""
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    """The existing namespaces of the tenants and of their parents."""
    values: Mapping[str, Object] = field(default_factory=dict)
    """The Secrets cozystack-values by namespace, including the platform's."""
    applications: Mapping[str, int] = field(default_factory=dict)
    """Number of applications by namespace of a tenant being deleted; they block the deletion."""
    left: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of objects by namespace of a tenant being deleted, and by kind, that would be deleted with it."""
    is_served_elsewhere: bool = False
    """An APIService serves the group: tenants belong to the platform, and nothing is written."""
    watch_error: str = ""
    """Why the contents of the namespaces are unknown; blocks deletions."""


@dataclass(frozen=True)
class ApplicationSnapshot:
    application: Object
    definition: ApplicationDefinition
    policy: EffectivePolicy = field(default_factory=EffectivePolicy)
    classes: Mapping[str, AffinityClass] = field(default_factory=dict)
    """The existing classes that the application, its release or its tenant name."""
    release: Object | None = None
    """The HelmRelease of its name."""
    is_release_served: bool = True
    """The API server serves HelmReleases."""
    other_release: str = ""
    """A HelmRelease of this application under another name, if there is none under the right name."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    is_webhook_registered: bool = True
    """The pod webhook is registered."""

    @property
    def ref(self) -> ObjectRef:
        return application_ref(self.application)

    @property
    def release_name(self) -> str:
        return release_name(self.definition, self.application["metadata"]["name"])

    @property
    def tenant_name(self) -> str:
        """Return the name of its Tenant; empty outside tenants."""
        return "" if self.policy.tenant is None else self.policy.tenant.name


def application_ref(application: Object) -> ObjectRef:
    metadata = application["metadata"]
    return ObjectRef(
        api_version=names.APPS_API_VERSION,
        kind=application["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
    )


def release_name(definition: ApplicationDefinition, name: str) -> str:
    return f"{definition.spec.release.prefix}{name}"


@dataclass(frozen=True)
class DefinitionSnapshot:
    definition: ApplicationDefinition
    crd: Object | None = None
    """The CRD of its plural, whoever created it."""
    former: Sequence[str] = ()
    """CRDs that were created for this definition under another plural."""
    rivals: Sequence[str] = ()
    """Older definitions that declare the same kind or plural."""
    applications: int = 0
    is_served_elsewhere: bool = False
    """An APIService serves the group: no CRD is created."""
    watch_error: str = ""
    """Why its applications cannot be watched."""


@dataclass(frozen=True)
class ClassSnapshot:
    affinity_class: AffinityClass
    zones: Mapping[str, int] = field(default_factory=dict)
    """Matching nodes by zone."""
    users: Sequence[ClassUser] = ()
    """Sorted by kind, namespace and name."""
    violators: Sequence[str] = ()
    """Running pods of the class that could run outside it, as `namespace/name`; not all if there are very many."""
    unnamed: int = 0
    """Number of further violators."""
    is_served_elsewhere: bool = False
    """An APIService serves tenants and applications: only HelmReleases can have the class."""

    @property
    def violator_count(self) -> int:
        return len(self.violators) + self.unnamed


@dataclass(frozen=True)
class PodSnapshot:
    ref: ObjectRef
    lineage: Lineage
    placement: Placement
    policy: EffectivePolicy
    affinity_class: AffinityClass | None
    """The class that it is checked against, if there is one."""
    is_exempt: bool
    """Pods in its namespace are never checked."""


Snapshot: TypeAlias = TenantsSnapshot | ApplicationSnapshot | DefinitionSnapshot | ClassSnapshot | PodSnapshot
