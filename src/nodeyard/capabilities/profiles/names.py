"""Every key string of profiles, once: those of the OpenStack operators, which are their interface, and ours."""

from __future__ import annotations

from typing import Final

CAPABILITY: Final = "profiles"
VERSION: Final = "v1beta1"

# the data plane
DATAPLANE_GROUP: Final = "dataplane.openstack.org"
DATAPLANE_API_VERSION: Final = f"{DATAPLANE_GROUP}/{VERSION}"
ROLE_KIND: Final = "OpenStackDataPlaneRole"
ROLE_PLURAL: Final = "openstackdataplaneroles"
NODE_KIND: Final = "OpenStackDataPlaneNode"
NODE_PLURAL: Final = "openstackdataplanenodes"
ROLE_LABEL: Final = "openstackdataplanerole"
NODE_LABEL: Final = "openstackdataplanenode"
"""Label of what is made for a node: its name."""

# services
NOVA: Final = "nova"
NOVA_GROUP: Final = "nova.openstack.org"
NOVA_API_VERSION: Final = f"{NOVA_GROUP}/{VERSION}"
COMPUTE_PROFILE_KIND: Final = "ComputeProfile"
COMPUTE_PROFILE_PLURAL: Final = "computeprofiles"
COMPUTE_KIND: Final = "NovaExternalCompute"
COMPUTE_PLURAL: Final = "novaexternalcomputes"
COMPUTE_PROFILE: Final = "nova.openstack.org/compute-profile"
CELL: Final = "nova.openstack.org/cell"

NEUTRON: Final = "neutron"
NEUTRON_GROUP: Final = "neutron.openstack.org"
NEUTRON_API_VERSION: Final = f"{NEUTRON_GROUP}/{VERSION}"
NETWORK_PROFILE_KIND: Final = "NetworkProfile"
NETWORK_PROFILE_PLURAL: Final = "networkprofiles"
AGENT_KIND: Final = "OVNMetadataAgent"
AGENT_PLURAL: Final = "ovnmetadataagents"
NETWORK_PROFILE: Final = "neutron.openstack.org/network-profile"

TELEMETRY: Final = "telemetry"
TELEMETRY_GROUP: Final = "telemetry.openstack.org"
TELEMETRY_API_VERSION: Final = f"{TELEMETRY_GROUP}/{VERSION}"
TELEMETRY_PROFILE_KIND: Final = "TelemetryProfile"
TELEMETRY_PROFILE_PLURAL: Final = "telemetryprofiles"
TELEMETRY_PROFILE: Final = "telemetry.openstack.org/telemetry-profile"

PROFILE_SUFFIX: Final = "-profile"
"""How annotations end that select a profile, those of services nobody has declared included."""

# ours
SERVICE_GROUP: Final = "nodeyard.dev"
SERVICE_VERSION: Final = "v1alpha1"
SERVICE_API_VERSION: Final = f"{SERVICE_GROUP}/{SERVICE_VERSION}"
SERVICE_KIND: Final = "ProfileService"
SERVICE_PLURAL: Final = "profileservices"
MANAGER: Final = "nodeyard-profiles"
HASH: Final = "nodeyard.dev/profile-hash"
"""Annotation of a service object: the hash of the configuration it is to have. Its operator reports it back."""
GENERATION: Final = "nodeyard.dev/profile-generation"
"""Annotation of a service object: the generation of the profile it is to have."""
WRITTEN: Final = "nodeyard.dev/profile-written"
"""Annotation of a service object: when the hash was last changed; the progress deadline counts from there."""
REPORTED_HASH: Final = "profile"
"""The member of a service object's `status.hash` in which its operator reports."""
CUSTOM_CONFIG: Final = "customServiceConfig"
"""The field of a service object's spec with configuration that users own: read, never written."""
SERVICE_LABEL: Final = "nodeyard.dev/profile-service"
"""Label of what is made for a service: its name."""

# indexes and keys
BY_ANNOTATION: Final = "annotation"
"""Nodes and roles by each annotation, as `key=value`, with the namespace first: `ns/key=value`."""
BY_ROLE: Final = "role"
"""Nodes by their role, as `namespace/role`."""


def node_key(namespace: str, name: str) -> str:
    return f"node/{namespace}/{name}"


def is_node_key(key: str) -> bool:
    return key.startswith("node/")


def profile_key(service: str, namespace: str, name: str) -> str:
    return f"profile/{service}/{namespace}/{name}"


def config_name(node: str, service: str) -> str:
    """The ConfigMap or Secret with the configuration of a node's service."""
    return f"{node}-{service}-config"
