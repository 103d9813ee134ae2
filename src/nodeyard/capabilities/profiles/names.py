"""Names of groups, kinds, labels and annotations: those of the OpenStack operators, and those of Nodeyard."""

from __future__ import annotations

from typing import Final

CONFIGURATION_GRANT: Final = "configuration"
"""Grant of ConfigMaps in the namespaces of nodes."""
SECRETS_GRANT: Final = "secrets"
"""Grant of Secrets in namespaces whose profiles may set renderAs: Secret."""
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
"""Label with the name of the node, on every object created for it."""

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
"""Suffix of annotation keys that name a profile, including those of undeclared services."""

# Nodeyard
SERVICE_GROUP: Final = "nodeyard.dev"
SERVICE_VERSION: Final = "v1alpha1"
SERVICE_API_VERSION: Final = f"{SERVICE_GROUP}/{SERVICE_VERSION}"
SERVICE_KIND: Final = "ProfileService"
SERVICE_PLURAL: Final = "profileservices"
MANAGER: Final = "nodeyard-profiles"
HASH: Final = "nodeyard.dev/profile-hash"
"""Annotation of a service object: desired config hash. The service operator reports it in status.hash.profile."""
GENERATION: Final = "nodeyard.dev/profile-generation"
"""Annotation of a service object: desired generation of the profile."""
WRITTEN: Final = "nodeyard.dev/profile-written"
"""Annotation of a service object: time of the last change of the hash, from which the progress deadline runs."""
REPORTED_HASH: Final = "profile"
"""Key in `status.hash` of a service object for the deployed config hash."""
CUSTOM_CONFIG: Final = "customServiceConfig"
"""Field of a service object's spec with configuration of the user; Nodeyard reads it and never writes it."""
SERVICE_LABEL: Final = "nodeyard.dev/profile-service"
"""Label with the name of the service, on every object created for it."""

# indexes and keys
BY_ANNOTATION: Final = "annotation"
"""Index of nodes and roles by annotation, as `namespace/key=value`."""
BY_ROLE: Final = "role"
"""Index of nodes by role, as `namespace/role`."""


def node_key(namespace: str, name: str) -> str:
    return f"node/{namespace}/{name}"


def is_node_key(key: str) -> bool:
    return key.startswith("node/")


def role_key(namespace: str, name: str) -> str:
    return f"role/{namespace}/{name}"


def service_key(name: str) -> str:
    return f"service/{name}"


def profile_key(service: str, namespace: str, name: str) -> str:
    return f"profile/{service}/{namespace}/{name}"


def budget(service: str, namespace: str, profile: str) -> str:
    """Return the name of the rollout budget that the objects of a service with one profile share."""
    return f"{service} {namespace}/{profile}"


def config_name(node: str, service: str) -> str:
    """Return the name of the ConfigMap or Secret with the configuration of a service on a node."""
    return f"{node}-{service}-config"
