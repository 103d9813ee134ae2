"""AffinityClass, Tenant and ApplicationDefinition: fields of the design, of CozyStack, and opt-in ones of ours.

Decoding is lenient on purpose: an object that a laxer schema admitted must still decode, so that it gets a condition.
Users declare the kinds of applications, so applications are plain JSON objects.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from nodeyard.capabilities.affinity import names
from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Condition, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap
from nodeyard.plan.model import ObjectRef


class Enforcement(StrEnum):
    DENY = "Deny"
    WARN = "Warn"
    AUDIT = "Audit"


class UnownedPods(StrEnum):
    ALLOW = "Allow"
    REQUIRE_ALLOWED = "RequireAllowed"


class ConditionType(StrEnum):
    READY = "Ready"
    # of a class
    NODES_MATCH = "NodesMatch"
    RELEASES_ONLY = "ReleasesOnly"
    # of a tenant
    NAMESPACE_READY = "NamespaceReady"
    CLASSES_VALID = "ClassesValid"
    # of a definition
    SERVED = "Served"
    # of an application
    RELEASED = "Released"
    RESOLVED = "AffinityClassResolved"
    ENFORCED = "PlacementEnforced"


class _Rooted(PlainStruct, frozen=True):
    _api_version: ClassVar[str]
    _kind: ClassVar[str]
    metadata: ObjectMeta = ObjectMeta()

    @property
    def ref(self) -> ObjectRef:
        metadata = self.metadata
        return ObjectRef(
            api_version=self._api_version,
            kind=self._kind,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
        )

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def is_paused(self) -> bool:
        return self.metadata.annotations.get(PAUSED) == names.TRUE

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None


# AffinityClass


class ClassNodeAffinity(NullableStruct, frozen=True):
    required: Annotated[
        dict[str, Any] | None,
        Meta(description="Required node affinity, as in a pod spec: at least one of nodeSelectorTerms must hold."),
    ] = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class AffinityClassSpec(NullableStruct, frozen=True):
    node_selector: Annotated[
        StringMap, Meta(description="Node labels that every pod of the application must require.")
    ] = {}
    node_affinity: Annotated[
        ClassNodeAffinity | None,
        Meta(description="Required node affinity of every pod, in addition to nodeSelector."),
    ] = None
    enforcement: Annotated[
        Enforcement,
        Meta(
            description="Deny rejects pods outside the class, Warn admits them with a warning, Audit only counts them."
        ),
    ] = Enforcement.DENY
    allow_namespace_override: Annotated[
        bool,
        Meta(description="Allows the namespace label nodeyard.dev/affinity-enforcement to weaken enforcement."),
    ] = False


class ZoneCount(PlainStruct, frozen=True):
    zone: Annotated[str, Meta(description="Zone; empty for nodes without a zone label.")] = ""
    nodes: Annotated[int, Meta(description="Number of matching nodes in the zone.")] = 0


class ClassUser(PlainStruct, frozen=True):
    kind: Annotated[str, Meta(description="Kind: Tenant, HelmRelease, or the kind of an application.")] = ""
    namespace: Annotated[str, Meta(description="Namespace of the object.")] = ""
    name: Annotated[str, Meta(description="Name of the object.")] = ""


class AffinityClassStatus(NullableStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="Generation that this status was computed for.")] = 0
    nodes: Annotated[int, Meta(description="Number of matching nodes.")] = 0
    zones: Annotated[Slice[ZoneCount], Meta(description="Number of matching nodes by zone.")] = ()
    users: Annotated[int, Meta(description="Number of tenants and applications that use the class.")] = 0
    in_use_by: Annotated[Slice[ClassUser], Meta(description="The first 100 users of the class.")] = ()
    violators: Annotated[int, Meta(description="Number of running pods of the class that could run outside it.")] = 0
    conditions: Annotated[Slice[Condition], Meta(description="Conditions of the object.")] = ()


class AffinityClass(_Rooted, frozen=True):
    _api_version = names.API_VERSION
    _kind = names.CLASS_KIND
    spec: Annotated[AffinityClassSpec, Meta(description="Nodes that pods of the class may run on.")] = (
        AffinityClassSpec()
    )
    status: Annotated[AffinityClassStatus, Meta(description="Observed state.")] = AffinityClassStatus()


# Tenant


class TenantSpec(NullableStruct, frozen=True):
    default_affinity_class: Annotated[
        str | None,
        Meta(
            description="Class of applications that set none. Inherited from the nearest ancestor if omitted; no "
            "default if empty."
        ),
    ] = None
    allowed_affinity_classes: Annotated[
        tuple[str, ...] | None,
        Meta(description="Classes that applications may use, a subset of the parent's. The parent's if omitted."),
    ] = None
    unowned_pods: Annotated[
        UnownedPods,
        Meta(
            description="Pods of no application: Allow admits them, RequireAllowed requires that they fit an allowed "
            "class."
        ),
    ] = UnownedPods.ALLOW
    host: Annotated[str, Meta(description="Host name of the tenant; a subdomain of the parent's host if empty.")] = ""
    etcd: Annotated[bool, Meta(description="Gives the tenant its own etcd instead of the parent's.")] = False
    monitoring: Annotated[bool, Meta(description="Gives the tenant its own monitoring instead of the parent's.")] = (
        False
    )
    ingress: Annotated[bool, Meta(description="Gives the tenant its own ingress instead of the parent's.")] = False
    gateway: Annotated[bool, Meta(description="Gives the tenant its own gateway instead of the parent's.")] = False
    seaweedfs: Annotated[bool, Meta(description="Gives the tenant its own SeaweedFS instead of the parent's.")] = False


class TenantStatus(NullableStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="Generation that this status was computed for.")] = 0
    namespace: Annotated[str, Meta(description="Namespace of the tenant.")] = ""
    default_affinity_class: Annotated[str, Meta(description="Effective default class; empty for none.")] = ""
    allowed_affinity_classes: Annotated[
        tuple[str, ...] | None, Meta(description="Effective allowed classes; omitted if all are allowed.")
    ] = None
    conditions: Annotated[Slice[Condition], Meta(description="Conditions of the object.")] = ()


class Tenant(_Rooted, frozen=True):
    _api_version = names.APPS_API_VERSION
    _kind = names.TENANT_KIND
    spec: Annotated[TenantSpec, Meta(description="Services and classes of the tenant.")] = TenantSpec()
    status: Annotated[TenantStatus, Meta(description="Observed state.")] = TenantStatus()

    @property
    def own_namespace(self) -> str:
        """Return the namespace of the tenant, which is not the one that the Tenant lives in."""
        return names.tenant_namespace(self.namespace, self.name)


# ApplicationDefinition


class ApplicationNames(PlainStruct, frozen=True):
    kind: Annotated[str, Meta(description="Kind in apps.cozystack.io/v1alpha1, such as Postgres.")] = ""
    plural: Annotated[str, Meta(description="Plural of the kind, such as postgreses.")] = ""
    singular: Annotated[str, Meta(description="Singular of the kind, such as postgres.")] = ""
    open_api_schema: Annotated[str, Meta(description="JSON schema of its spec, as a string.")] = msgspec.field(
        default="", name="openAPISchema"
    )


class ChartRef(PlainStruct, frozen=True):
    kind: Annotated[
        str, Meta(description="Kind of the chart source: OCIRepository, HelmChart or ExternalArtifact.")
    ] = ""
    name: Annotated[str, Meta(description="Name of the chart source.")] = ""
    namespace: Annotated[str, Meta(description="Namespace of the chart source.")] = ""


class ReleaseTemplate(NullableStruct, frozen=True):
    prefix: Annotated[str, Meta(description="Prefix of the HelmRelease name, before the application's name.")] = ""
    labels: Annotated[StringMap, Meta(description="Labels of the HelmRelease.")] = {}
    chart_ref: Annotated[ChartRef | None, Meta(description="Chart to release.")] = None


class ApplicationDefinitionSpec(PlainStruct, frozen=True):
    application: Annotated[ApplicationNames, Meta(description="Kind to serve.")] = ApplicationNames()
    release: Annotated[ReleaseTemplate, Meta(description="HelmRelease of an application.")] = ReleaseTemplate()


class ApplicationDefinitionStatus(NullableStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="Generation that this status was computed for.")] = 0
    applications: Annotated[int, Meta(description="Number of applications of the kind.")] = 0
    conditions: Annotated[Slice[Condition], Meta(description="Conditions of the object.")] = ()


class ApplicationDefinition(_Rooted, frozen=True):
    _api_version = names.API_VERSION
    _kind = names.DEFINITION_KIND
    spec: Annotated[
        ApplicationDefinitionSpec,
        Meta(description="Kind and chart of the applications; fields for other parts of CozyStack are preserved."),
    ] = ApplicationDefinitionSpec()
    status: Annotated[ApplicationDefinitionStatus, Meta(description="Observed state.")] = ApplicationDefinitionStatus()

    @property
    def kind(self) -> str:
        return self.spec.application.kind


# Applications: of the kinds that ApplicationDefinitions declare


class ApplicationStatus(NullableStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="Generation that this status was computed for.")] = 0
    version: Annotated[str, Meta(description="Chart version of the last attempt.")] = ""
    release: Annotated[str, Meta(description="Name of the HelmRelease, in the application's namespace.")] = ""
    affinity_class: Annotated[str, Meta(description="Effective class; empty for none.")] = ""
    previous_affinity_class: Annotated[
        str,
        Meta(
            description="Previous class, which pods may have until the release is ready; several if the class "
            "changed more than once."
        ),
    ] = ""
    node_selector: Annotated[StringMap, Meta(description="nodeSelector of the class.")] = {}
    conditions: Annotated[Slice[Condition], Meta(description="Conditions of the object.")] = ()


class Application(PlainStruct, frozen=True):
    """The fields that applications of all kinds share; the ApplicationDefinition defines the spec."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[dict[str, Any], Meta(description="Values for the chart, and the AffinityClass.")] = {}
    status: Annotated[ApplicationStatus, Meta(description="Observed state.")] = ApplicationStatus()
