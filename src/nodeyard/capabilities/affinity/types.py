"""AffinityClass, Tenant and ApplicationDefinition: the fields of the design and of CozyStack, and ours, all opt-in.

Decoding is lenient on purpose: an object that a laxer schema let in must still decode, so that it gets a condition
instead of silence. Applications are of kinds that users declare, so they are plain objects.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodeyard.capabilities.affinity import names
from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Condition, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap


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
    metadata: ObjectMeta = ObjectMeta()

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
        Meta(description="nodeSelectorTerms, of which one has to hold: what a pod's own required node affinity says."),
    ] = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class AffinityClassSpec(NullableStruct, frozen=True):
    node_selector: Annotated[
        StringMap, Meta(description="Labels that every pod of the application has to select its nodes by.")
    ] = {}
    node_affinity: Annotated[
        ClassNodeAffinity | None,
        Meta(description="Beside the nodeSelector: terms of which one has to hold for every node a pod may go to."),
    ] = None
    enforcement: Annotated[
        Enforcement,
        Meta(description="Deny refuses pods outside the class, Warn admits them with a warning, Audit only counts."),
    ] = Enforcement.DENY
    allow_namespace_override: Annotated[
        bool,
        Meta(description="Whether the label nodeyard.dev/affinity-enforcement of a namespace may weaken enforcement."),
    ] = False


class ZoneCount(PlainStruct, frozen=True):
    zone: Annotated[str, Meta(description="The zone; empty for nodes without one.")] = ""
    nodes: Annotated[int, Meta(description="How many nodes in it match.")] = 0


class ClassUser(PlainStruct, frozen=True):
    kind: Annotated[str, Meta(description="Tenant, or the kind of an application.")] = ""
    namespace: Annotated[str, Meta(description="Its namespace.")] = ""
    name: Annotated[str, Meta(description="Its name.")] = ""


class AffinityClassStatus(NullableStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="The generation that this status is about.")] = 0
    nodes: Annotated[int, Meta(description="How many nodes match.")] = 0
    zones: Annotated[Slice[ZoneCount], Meta(description="The same, by zone.")] = ()
    users: Annotated[int, Meta(description="How many tenants and applications name the class.")] = 0
    in_use_by: Annotated[Slice[ClassUser], Meta(description="The first hundred of them.")] = ()
    violators: Annotated[int, Meta(description="How many running pods of its applications may be outside of it.")] = 0
    conditions: Annotated[Slice[Condition], Meta(description="How it stands.")] = ()


class AffinityClass(_Rooted, frozen=True):
    spec: Annotated[AffinityClassSpec, Meta(description="Where pods of the class may run.")] = AffinityClassSpec()
    status: Annotated[AffinityClassStatus, Meta(description="What is observed.")] = AffinityClassStatus()


# Tenant


class TenantSpec(NullableStruct, frozen=True):
    default_affinity_class: Annotated[
        str | None,
        Meta(description="The class of applications that name none; the nearest ancestor's if omitted, none if empty."),
    ] = None
    allowed_affinity_classes: Annotated[
        tuple[str, ...] | None,
        Meta(description="The classes that applications may name, within the parent's; the parent's if omitted."),
    ] = None
    unowned_pods: Annotated[
        UnownedPods,
        Meta(description="Pods of no application: Allow them, or require that they fit at least one allowed class."),
    ] = UnownedPods.ALLOW
    host: Annotated[str, Meta(description="The tenant's host name; below the parent's if empty.")] = ""
    etcd: Annotated[bool, Meta(description="Whether the tenant has its own etcd; else the parent's.")] = False
    monitoring: Annotated[bool, Meta(description="Whether it has its own monitoring; else the parent's.")] = False
    ingress: Annotated[bool, Meta(description="Whether it has its own ingress; else the parent's.")] = False
    gateway: Annotated[bool, Meta(description="Whether it has its own gateway; else the parent's.")] = False
    seaweedfs: Annotated[bool, Meta(description="Whether it has its own SeaweedFS; else the parent's.")] = False


class TenantStatus(NullableStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="The generation that this status is about.")] = 0
    namespace: Annotated[str, Meta(description="The tenant's namespace.")] = ""
    default_affinity_class: Annotated[str, Meta(description="The default that is in effect; empty for none.")] = ""
    allowed_affinity_classes: Annotated[
        tuple[str, ...] | None, Meta(description="The classes that are in effect allowed; omitted where all are.")
    ] = None
    conditions: Annotated[Slice[Condition], Meta(description="How it stands.")] = ()


class Tenant(_Rooted, frozen=True):
    spec: Annotated[TenantSpec, Meta(description="What the tenant has and may use.")] = TenantSpec()
    status: Annotated[TenantStatus, Meta(description="What is observed.")] = TenantStatus()

    @property
    def own_namespace(self) -> str:
        """The namespace that is the tenant's."""
        return names.tenant_namespace(self.namespace, self.name)


# ApplicationDefinition


class ApplicationNames(PlainStruct, frozen=True):
    kind: Annotated[str, Meta(description="The kind in apps.cozystack.io/v1alpha1, such as Postgres.")] = ""
    plural: Annotated[str, Meta(description="Its plural, such as postgreses.")] = ""
    singular: Annotated[str, Meta(description="Its singular, such as postgres.")] = ""
    open_api_schema: Annotated[str, Meta(description="The JSON schema of its spec, as text.")] = msgspec.field(
        default="", name="openAPISchema"
    )


class ChartRef(PlainStruct, frozen=True):
    kind: Annotated[str, Meta(description="OCIRepository, HelmChart or ExternalArtifact.")] = ""
    name: Annotated[str, Meta(description="Its name.")] = ""
    namespace: Annotated[str, Meta(description="Its namespace.")] = ""


class ReleaseTemplate(NullableStruct, frozen=True):
    prefix: Annotated[str, Meta(description="Before the application's name, in the name of its HelmRelease.")] = ""
    labels: Annotated[StringMap, Meta(description="Labels of the HelmRelease.")] = {}
    chart_ref: Annotated[ChartRef | None, Meta(description="The chart that is released.")] = None


class ApplicationDefinitionSpec(PlainStruct, frozen=True):
    application: Annotated[ApplicationNames, Meta(description="The kind that is served.")] = ApplicationNames()
    release: Annotated[ReleaseTemplate, Meta(description="How an application is released.")] = ReleaseTemplate()


class ApplicationDefinitionStatus(NullableStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="The generation that this status is about.")] = 0
    applications: Annotated[int, Meta(description="How many applications of the kind there are.")] = 0
    conditions: Annotated[Slice[Condition], Meta(description="How it stands.")] = ()


class ApplicationDefinition(_Rooted, frozen=True):
    spec: Annotated[
        ApplicationDefinitionSpec, Meta(description="The kind and its chart; fields for other parts are kept unread.")
    ] = ApplicationDefinitionSpec()
    status: Annotated[ApplicationDefinitionStatus, Meta(description="What is observed.")] = (
        ApplicationDefinitionStatus()
    )

    @property
    def kind(self) -> str:
        return self.spec.application.kind


# Applications: of the kinds that ApplicationDefinitions declare


class ApplicationStatus(NullableStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="The generation that this status is about.")] = 0
    version: Annotated[str, Meta(description="The version of the chart that was last tried.")] = ""
    release: Annotated[str, Meta(description="The HelmRelease, in the application's namespace.")] = ""
    affinity_class: Annotated[str, Meta(description="The class in effect; empty for none.")] = ""
    previous_affinity_class: Annotated[
        str,
        Meta(
            description="The class before, which pods may have until the release is ready; several where it changed "
            "more than once."
        ),
    ] = ""
    node_selector: Annotated[StringMap, Meta(description="The labels that the class selects nodes by.")] = {}
    conditions: Annotated[Slice[Condition], Meta(description="How it stands.")] = ()


class Application(_Rooted, frozen=True):
    """What every application has, whatever its kind; the form of its spec is its definition's."""

    spec: Annotated[dict[str, Any], Meta(description="What its chart takes, and the class it is placed by.")] = {}
    status: Annotated[ApplicationStatus, Meta(description="What is observed.")] = ApplicationStatus()
