"""CRDs of profiles. Their validation rules are in `validation`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from nodeyard.capabilities.profiles import names, validation
from nodeyard.capabilities.profiles.planning.registry import NEUTRON, NOVA, TELEMETRY
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.capabilities.profiles.types import (
    ComputeProfile,
    NetworkProfile,
    NovaExternalCompute,
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    OVNMetadataAgent,
    ProfileService,
    TelemetryProfile,
)
from nodeyard.kube.json import Object
from nodeyard.schema.crd import Column, Definition

_READY = Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
_MESSAGE = Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1)
_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_PROFILE_COLUMNS = (
    Column("Nodes", ".status.nodeCount", "integer", description="Nodes with this profile."),
    Column("Updated", ".status.updated", "integer", description="Service objects with the current generation."),
    Column("Available", ".status.available", "integer", description="Available service objects."),
    _READY,
    _AGE,
    _MESSAGE,
)

ROLE: Final = Definition(
    type=OpenStackDataPlaneRole,
    group=names.DATAPLANE_GROUP,
    version=names.VERSION,
    kind=names.ROLE_KIND,
    plural=names.ROLE_PLURAL,
    description="OpenStackDataPlaneRole holds values that its nodes inherit; its annotations choose their profiles.",
    namespaced=True,
    short_names=("osdprole",),
    columns=(
        Column("Nodes", ".status.nodeCount", "integer", description="Nodes with this role."),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.ROLE,
)
NODE: Final = Definition(
    type=OpenStackDataPlaneNode,
    group=names.DATAPLANE_GROUP,
    version=names.VERSION,
    kind=names.NODE_KIND,
    plural=names.NODE_PLURAL,
    description="OpenStackDataPlaneNode is one host. Empty fields are inherited from its role; its annotations choose "
    "one profile per service.",
    namespaced=True,
    short_names=("osdpnode",),
    columns=(
        Column("Role", ".spec.role"),
        Column("Compute", ".status.profiles.nova.value", description="ComputeProfile of the node."),
        Column("Network", ".status.profiles.neutron.value", description="NetworkProfile of the node."),
        Column("Telemetry", ".status.profiles.telemetry.value", description="TelemetryProfile of the node."),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.NODE,
)


def _profile(
    service: Service, type: type[Struct], plural: str, short: str, overlay: Mapping[str, Object]
) -> Definition:
    """Return the CRD of a profile kind; the kinds differ only in their configuration field."""
    return Definition(
        type=type,
        group=service.profile_api_version.rpartition("/")[0],
        version=names.VERSION,
        kind=service.profile_kind,
        plural=plural,
        description=f"{service.profile_kind} is a configuration of {service.name} that any number of nodes can use.",
        namespaced=True,
        short_names=(short,),
        columns=_PROFILE_COLUMNS,
        overlay=overlay,
    )


COMPUTE_PROFILE: Final = _profile(
    NOVA, ComputeProfile, names.COMPUTE_PROFILE_PLURAL, "cprof", validation.COMPUTE_PROFILE
)
NETWORK_PROFILE: Final = _profile(
    NEUTRON, NetworkProfile, names.NETWORK_PROFILE_PLURAL, "nprof", validation.NETWORK_PROFILE
)
TELEMETRY_PROFILE: Final = _profile(
    TELEMETRY, TelemetryProfile, names.TELEMETRY_PROFILE_PLURAL, "tprof", validation.TELEMETRY_PROFILE
)
COMPUTE: Final = Definition(
    type=NovaExternalCompute,
    group=names.NOVA_GROUP,
    version=names.VERSION,
    kind=names.COMPUTE_KIND,
    plural=names.COMPUTE_PLURAL,
    description="NovaExternalCompute is the compute service of nova on one node.",
    namespaced=True,
    short_names=("nec",),
    columns=(
        Column("Node", ".spec.dataplaneNodeName"),
        Column("Profile", ".spec.computeProfileName"),
        Column("Cell", ".spec.cellName"),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.COMPUTE,
    is_root=False,
)
AGENT: Final = Definition(
    type=OVNMetadataAgent,
    group=names.NEUTRON_GROUP,
    version=names.VERSION,
    kind=names.AGENT_KIND,
    plural=names.AGENT_PLURAL,
    description="OVNMetadataAgent is the metadata agent of neutron on one node.",
    namespaced=True,
    short_names=("ovnma",),
    columns=(
        Column("Node", ".spec.dataplaneNodeName"),
        Column("Profile", ".spec.networkProfileName"),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.AGENT,
    is_root=False,
)
SERVICE: Final = Definition(
    type=ProfileService,
    group=names.SERVICE_GROUP,
    version=names.SERVICE_VERSION,
    kind=names.SERVICE_KIND,
    plural=names.SERVICE_PLURAL,
    description="ProfileService declares a service: the annotation that chooses its profiles, and the object that is "
    "created for a node.",
    namespaced=False,
    short_names=("profsvc",),
    columns=(
        Column("Key", ".spec.annotationKey"),
        Column("Profile", ".spec.profile.kind"),
        Column("Object", ".spec.object.kind"),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.SERVICE,
)
DEFINITIONS: Final = (
    ROLE,
    NODE,
    COMPUTE_PROFILE,
    NETWORK_PROFILE,
    TELEMETRY_PROFILE,
    COMPUTE,
    AGENT,
    SERVICE,
)
