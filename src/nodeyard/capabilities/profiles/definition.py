"""The CRDs of all kinds of profiles. What they check is in `validation`."""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.profiles import names, validation
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
from nodeyard.schema.crd import Column, Definition

_READY = Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
_MESSAGE = Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1)
_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_PROFILE_COLUMNS = (
    Column("Nodes", ".status.nodeCount", "integer", description="Nodes that have it."),
    Column("Updated", ".status.updated", "integer", description="Those that have it as it is now."),
    Column("Available", ".status.available", "integer", description="Those that run with it."),
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
    description="An OpenStackDataPlaneRole is what many nodes have in common; its annotations choose their profiles.",
    namespaced=True,
    short_names=("osdprole",),
    columns=(
        Column("Nodes", ".status.nodeCount", "integer", description="Nodes that have this role."),
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
    description="An OpenStackDataPlaneNode is one host. What it does not say comes from its role; its annotations "
    "choose a profile per service.",
    namespaced=True,
    short_names=("osdpnode",),
    columns=(
        Column("Role", ".spec.role"),
        Column("Compute", ".status.profiles.nova.value", description="Its ComputeProfile."),
        Column("Network", ".status.profiles.neutron.value", description="Its NetworkProfile."),
        Column("Telemetry", ".status.profiles.telemetry.value", description="Its TelemetryProfile."),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.NODE,
)
COMPUTE_PROFILE: Final = Definition(
    type=ComputeProfile,
    group=names.NOVA_GROUP,
    version=names.VERSION,
    kind=names.COMPUTE_PROFILE_KIND,
    plural=names.COMPUTE_PROFILE_PLURAL,
    description="A ComputeProfile is nova's configuration for any number of nodes.",
    namespaced=True,
    short_names=("cprof",),
    columns=_PROFILE_COLUMNS,
    overlay=validation.COMPUTE_PROFILE,
)
NETWORK_PROFILE: Final = Definition(
    type=NetworkProfile,
    group=names.NEUTRON_GROUP,
    version=names.VERSION,
    kind=names.NETWORK_PROFILE_KIND,
    plural=names.NETWORK_PROFILE_PLURAL,
    description="A NetworkProfile is neutron's configuration for any number of nodes.",
    namespaced=True,
    short_names=("nprof",),
    columns=_PROFILE_COLUMNS,
    overlay=validation.NETWORK_PROFILE,
)
TELEMETRY_PROFILE: Final = Definition(
    type=TelemetryProfile,
    group=names.TELEMETRY_GROUP,
    version=names.VERSION,
    kind=names.TELEMETRY_PROFILE_KIND,
    plural=names.TELEMETRY_PROFILE_PLURAL,
    description="A TelemetryProfile is the configuration of telemetry for any number of nodes.",
    namespaced=True,
    short_names=("tprof",),
    columns=_PROFILE_COLUMNS,
    overlay=validation.TELEMETRY_PROFILE,
)
COMPUTE: Final = Definition(
    type=NovaExternalCompute,
    group=names.NOVA_GROUP,
    version=names.VERSION,
    kind=names.COMPUTE_KIND,
    plural=names.COMPUTE_PLURAL,
    description="A NovaExternalCompute is nova's compute service on one node, made for it.",
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
)
AGENT: Final = Definition(
    type=OVNMetadataAgent,
    group=names.NEUTRON_GROUP,
    version=names.VERSION,
    kind=names.AGENT_KIND,
    plural=names.AGENT_PLURAL,
    description="An OVNMetadataAgent is neutron's metadata agent on one node, made for it.",
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
)
SERVICE: Final = Definition(
    type=ProfileService,
    group=names.SERVICE_GROUP,
    version=names.SERVICE_VERSION,
    kind=names.SERVICE_KIND,
    plural=names.SERVICE_PLURAL,
    description="A ProfileService declares a service: which annotation chooses its profiles, and what is made for a "
    "node that has one.",
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
