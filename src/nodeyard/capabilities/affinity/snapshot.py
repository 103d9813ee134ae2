"""What may influence the decisions, frozen: one snapshot for each kind of key.

    tenants                         the whole tree of Tenants, their Namespaces and values
    application/<Kind>/<ns>/<name>  one application, its definition, tenant, class and release
    definition/<name>               one ApplicationDefinition, the CRD that serves it
    class/<name>                    one AffinityClass, the nodes that match it, who uses it

Applications, HelmReleases, CRDs and Secrets are kept whole, as the server has them: what an apply would change is read
off their fields and managed fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, ClassUser, Tenant, UnownedPods
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace


@dataclass(frozen=True)
class TenantsSnapshot:
    tenants: Sequence[Tenant]
    """All, by namespace and name."""
    classes: frozenset[str] = frozenset()
    """Those that exist."""
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    """The tenants' own and those they live in, as far as they exist."""
    values: Mapping[str, Object] = field(default_factory=dict)
    """The Secrets cozystack-values, by namespace; also the platform's."""
    applications: Mapping[str, int] = field(default_factory=dict)
    """By namespace, how many applications there are: a tenant that has some is not deleted."""
    is_served_elsewhere: bool = False
    """An APIService serves the group: tenants are the platform's, and nothing is written here."""
    trouble: str = ""
    """Why it is not known how many applications there are, where it is not: no tenant is deleted then."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a tenant."""

    reason: Reason
    facts: Object


@dataclass(frozen=True)
class Standing:
    """What a tenant's tree says about the classes of one namespace."""

    tenant: Tenant | None = None
    """None outside tenants."""
    default: str = ""
    allowed: tuple[str, ...] | None = None
    """None: all."""
    fault: str = ""
    """Why the default cannot be used, where it cannot."""
    faults: tuple[Fault, ...] = ()
    """All that is wrong with what the tenant says, for its conditions and reviews."""
    needs_class_above: bool = False
    """A tenant above it lets no application go without a class."""
    holds_unowned_above: bool = False
    """A tenant above it holds pods of no application to its classes."""

    @property
    def needs_class(self) -> bool:
        """Whether its applications may not go without a class: it has a default, and allows some classes only."""
        return self.needs_class_above or (self.allowed is not None and bool(self.default or self.fault))

    @property
    def holds_unowned(self) -> bool:
        """Whether pods of no application have to keep to at least one allowed class."""
        own = self.tenant is not None and self.tenant.spec.unowned_pods is UnownedPods.REQUIRE_ALLOWED
        return own or self.holds_unowned_above

    @property
    def usable_default(self) -> str:
        """The default that is in effect; empty for none."""
        return "" if self.fault else self.default


@dataclass(frozen=True)
class ApplicationSnapshot:
    application: Object
    definition: ApplicationDefinition
    standing: Standing = Standing()
    classes: Mapping[str, AffinityClass] = field(default_factory=dict)
    """Those that the application, its release or its tenant name, as far as they exist."""
    release: Object | None = None
    """The HelmRelease of its name."""
    is_release_served: bool = True
    """Whether the server has HelmReleases at all."""
    other_release: str = ""
    """A HelmRelease of another name that is this application's, where there is none of the right name."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    is_asked: bool = True
    """Whether the API server asks us before it stores a pod."""


@dataclass(frozen=True)
class DefinitionSnapshot:
    definition: ApplicationDefinition
    crd: Object | None = None
    """The CRD of its plural, whoever made it."""
    former: Sequence[str] = ()
    """CRDs of other names that were made for this definition, before it was called otherwise."""
    rivals: Sequence[str] = ()
    """Older definitions that declare the same kind or plural."""
    applications: int = 0
    is_served_elsewhere: bool = False
    """An APIService serves the group: no CRD is made."""
    trouble: str = ""
    """Why its applications cannot be watched."""


@dataclass(frozen=True)
class ClassSnapshot:
    affinity_class: AffinityClass
    zones: Mapping[str, int] = field(default_factory=dict)
    """Matching nodes by zone."""
    users: Sequence[ClassUser] = ()
    """By kind, namespace and name."""
    violators: Sequence[str] = ()
    """Running pods of its applications that are outside the class, as `namespace/name`."""
    is_served_elsewhere: bool = False
    """An APIService serves tenants and applications: only HelmReleases can have the class."""
