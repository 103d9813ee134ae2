"""Types of roles, nodes, profiles and service objects of the OpenStack operators, and of ProfileService.

Inheritable fields have no schema default: the API server would set it on the node, where it would override the value of
the role. Decoding is lenient: an object that a laxer schema admitted gets a condition instead of being ignored. A null
spec is an empty spec.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Condition, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap


class UpdatePolicy(StrEnum):
    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class ConfigFormat(StrEnum):
    """Format of the configuration of a service; it decides how the configuration is validated."""

    INI = "INI"
    TEXT = "Text"


class Source(StrEnum):
    """Layer that chose the profile of a node."""

    NODE = "Node"
    ROLE = "Role"
    SELECTOR = "Selector"


class State(StrEnum):
    """State of a node's choice for a service."""

    RESOLVED = "Resolved"
    DISABLED = "Disabled"
    NONE = "None"
    NOT_FOUND = "NotFound"
    INVALID = "Invalid"
    AMBIGUOUS = "Ambiguous"


# the data plane


class NovaTemplate(PlainStruct, frozen=True):
    cell_name: Annotated[str, Meta(description="Name of the cell; inherited from the role if empty.")] = ""
    nova_instance: Annotated[str, Meta(description="Name of the Nova; inherited from the role if empty.")] = ""
    custom_service_config: Annotated[
        str, Meta(description="Additional configuration; inherited from the role if empty.")
    ] = ""
    deploy: Annotated[bool | None, Meta(description="Enables deployment; inherited from the role if omitted.")] = None


class NetworkConfig(PlainStruct, frozen=True):
    template: Annotated[
        str, Meta(description="Template of the network configuration; inherited from the role if empty.")
    ] = ""


class NodeSection(NullableStruct, frozen=True):
    network_config: Annotated[NetworkConfig, Meta(description="Network configuration of the host.")] = NetworkConfig()
    networks: Annotated[
        Slice[Any], Meta(description="Networks of the host; the whole list is inherited from the role if empty.")
    ] = ()
    management_network: Annotated[str, Meta(description="Management network; inherited from the role if empty.")] = ""
    ansible_user: Annotated[
        str, Meta(description="User that Ansible logs in as; inherited from the role if empty.")
    ] = ""
    ansible_port: Annotated[int, Meta(description="Port that Ansible connects to; inherited from the role if 0.")] = 0
    ansible_vars: Annotated[
        str,
        Meta(description="Ansible variables as YAML; top-level keys override those of the role, without a deep merge."),
    ] = ""
    ansible_ssh_private_key_secret: Annotated[
        str, Meta(description="Secret with the SSH key of Ansible; inherited from the role if empty.")
    ] = msgspec.field(default="", name="ansibleSSHPrivateKeySecret")
    extra_mounts: Annotated[
        Slice[Any], Meta(description="Additional mounts; the whole list is inherited from the role if empty.")
    ] = ()
    user_data: Annotated[Any, Meta(description="Secret with user data.")] = None
    network_data: Annotated[Any, Meta(description="Secret with network data.")] = None
    nova: Annotated[
        NovaTemplate | None, Meta(description="Settings of nova; empty fields are inherited from the role.")
    ] = None


class DeployStrategy(PlainStruct, frozen=True):
    deploy: Annotated[bool | None, Meta(description="Enables deployment; inherited from the role if omitted.")] = None
    ansible_tags: Annotated[str, Meta(description="Ansible tags to run; inherited from the role if empty.")] = ""
    ansible_limit: Annotated[
        str, Meta(description="Hosts that Ansible is limited to; inherited from the role if empty.")
    ] = ""
    ansible_skip_tags: Annotated[str, Meta(description="Ansible tags to skip; inherited from the role if empty.")] = ""


class RoleSpec(NullableStruct, frozen=True):
    data_plane: Annotated[str, Meta(description="Name of the OpenStackDataPlane of this role.")] = ""
    baremetal_set_template: Annotated[Any, Meta(description="Template for provisioning bare metal hosts.")] = None
    node_template: Annotated[
        NodeSection, Meta(description="Values that nodes of this role inherit where their own are empty.")
    ] = NodeSection()
    pre_provisioned: Annotated[bool | None, Meta(description="True if the hosts are already provisioned.")] = None
    env: Annotated[Slice[Any], Meta(description="Environment variables of Ansible runs.")] = ()
    deploy_strategy: Annotated[DeployStrategy, Meta(description="Deployment options.")] = DeployStrategy()
    network_attachments: Annotated[
        Slice[str],
        Meta(description="Networks that Ansible runs are attached to; a node that sets its own must set the same."),
    ] = ()
    services: Annotated[Slice[str], Meta(description="Services to deploy on the nodes of this role.")] = ()
    profile_update_policy: Annotated[
        str,
        Meta(
            description="Automatic: nodes follow changes of their profile. Manual: nodes keep the deployed generation "
            "until another profile is chosen for them. Used by nodes that do not set their own; Automatic if empty."
        ),
    ] = ""


class NodeSpec(NullableStruct, frozen=True):
    host_name: Annotated[str, Meta(description="Name of the host.")] = ""
    node: Annotated[NodeSection, Meta(description="Values of this node; empty fields are inherited from the role.")] = (
        NodeSection()
    )
    role: Annotated[
        str, Meta(description="Name of the OpenStackDataPlaneRole in this namespace; no role if empty.")
    ] = ""
    ansible_host: Annotated[str, Meta(description="Address that Ansible connects to.")] = ""
    env: Annotated[
        Slice[Any], Meta(description="Environment variables of Ansible runs; inherited from the role if empty.")
    ] = ()
    deploy_strategy: Annotated[DeployStrategy, Meta(description="Deployment options.")] = DeployStrategy()
    network_attachments: Annotated[
        Slice[str],
        Meta(description="Networks that Ansible runs are attached to; must equal those of the role if both are set."),
    ] = ()
    profile_update_policy: Annotated[
        str, Meta(description="Automatic or Manual, as on the role; inherited from the role if empty.")
    ] = ""


class Choice(NullableStruct, frozen=True, omit_defaults=True):
    """Choice for one service in the status of a node."""

    value: Annotated[str, Meta(description="Name of the chosen profile; empty if none.")] = ""
    source: Annotated[str, Meta(description="Layer that chose: Node, Role or Selector; empty if none did.")] = ""
    state: Annotated[
        str, Meta(description="State of the choice: Resolved, Disabled, None, NotFound, Invalid or Ambiguous.")
    ] = ""
    shadowed: Annotated[
        Slice[str], Meta(description="Choices of lower layers that are overridden, as source=profile.")
    ] = ()
    profile_uid: Annotated[str, Meta(description="UID of the profile.")] = msgspec.field(default="", name="profileUID")
    profile_generation: Annotated[int, Meta(description="Generation of the profile that the service object has.")] = 0
    hash: Annotated[str, Meta(description="Hash of the configuration that the service object has.")] = ""
    pinned: Annotated[
        bool, Meta(description="True if the node keeps an earlier generation because of profileUpdatePolicy: Manual.")
    ] = False
    message: Annotated[str, Meta(description="Fault of the choice, or what its rollout waits for.")] = ""


class NodeStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="Generation of the spec that this status describes.")] = 0
    profiles: Annotated[dict[str, Choice], Meta(description="Choice for each service, by service name.")] = {}
    unknown_profiles: Annotated[
        Slice[str], Meta(description="Annotation keys that end in -profile and that no service declares.")
    ] = ()
    effective: Annotated[Any, Meta(description="Values of the node after inheritance from its role.")] = None
    conditions: Annotated[
        Slice[Condition], Meta(description="Conditions Ready, RoleReady, ProfilesReady, RolloutDone and ServicesKnown.")
    ] = ()


class OpenStackDataPlaneNode(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NodeSpec | None, Meta(description="Desired state.")] = None
    status: Annotated[NodeStatus, Meta(description="Observed state.")] = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def wanted(self) -> NodeSpec:
        return self.spec or NodeSpec()

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_paused(self) -> bool:
        return self.metadata.annotations.get(PAUSED) == "true"


class RoleStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="Generation of the spec that this status describes.")] = 0
    node_count: Annotated[int, Meta(description="Number of nodes with this role.")] = 0
    conditions: Annotated[Slice[Condition], Meta(description="Condition Ready.")] = ()


class OpenStackDataPlaneRole(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[RoleSpec | None, Meta(description="Desired state.")] = None
    status: Annotated[RoleStatus, Meta(description="Observed state.")] = RoleStatus()

    @property
    def wanted(self) -> RoleSpec:
        return self.spec or RoleSpec()


# profiles


class Progress(StrEnum):
    """Decides if a rollout waits for the service operator to report the deployed hash."""

    REPORT = "Report"
    IGNORE = "Ignore"


_PROGRESS = (
    "Report: a rollout waits until the service operator reports the hash in status.hash.profile of each object. "
    "Ignore: a rollout waits only for condition Ready, if the object has one. If empty: Ignore until an object of the "
    "service reports a hash, then Report."
)


class ProfileSpec(PlainStruct, frozen=True):
    """Common fields of all profiles; the configuration is in a field that the service names."""

    max_unavailable: Annotated[
        int | str | None,
        Meta(description="Number or percentage of its objects that a rollout may make unavailable; 25% if omitted."),
    ] = None
    progress_deadline_seconds: Annotated[
        int | None, Meta(description="Seconds after which a rollout without progress stops; 600 if omitted.")
    ] = None
    progress: Annotated[str, Meta(description=_PROGRESS)] = ""
    render_as: Annotated[
        str, Meta(description="Kind of the rendered configuration object: ConfigMap or Secret; ConfigMap if empty.")
    ] = ""
    node_selector: Annotated[
        StringMap | None,
        Meta(description="Selects nodes by label, if neither the node nor its role has the annotation of the service."),
    ] = None
    priority: Annotated[
        int, Meta(description="The selecting profile with the highest priority wins; a tie is an error.")
    ] = 0


class ComputeProfileSpec(ProfileSpec, frozen=True):
    custom_compute_service_config: Annotated[
        str, Meta(description="Configuration of nova as INI text, kept byte for byte.")
    ] = ""


class NetworkProfileSpec(ProfileSpec, frozen=True):
    custom_service_config: Annotated[
        str, Meta(description="Configuration of neutron as INI text, kept byte for byte.")
    ] = ""


class TelemetryProfileSpec(ProfileSpec, frozen=True):
    custom_service_config: Annotated[
        str, Meta(description="Configuration of telemetry as INI text, kept byte for byte.")
    ] = ""


class ProfileStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="Generation of the spec that this status describes.")] = 0
    node_count: Annotated[int, Meta(description="Number of nodes with this profile.")] = 0
    nodes: Annotated[Slice[str], Meta(description="Names of the first 100 nodes with this profile.")] = ()
    updated: Annotated[int, Meta(description="Number of service objects that have the current generation.")] = 0
    available: Annotated[int, Meta(description="Number of available service objects.")] = 0
    hash: Annotated[str, Meta(description="Hash of the configuration.")] = ""
    conditions: Annotated[Slice[Condition], Meta(description="Conditions Ready and Progressing.")] = ()


class ComputeProfile(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ComputeProfileSpec | None, Meta(description="Configuration and rollout options.")] = None
    status: Annotated[ProfileStatus, Meta(description="Nodes and rollout progress.")] = ProfileStatus()


class NetworkProfile(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NetworkProfileSpec | None, Meta(description="Configuration and rollout options.")] = None
    status: Annotated[ProfileStatus, Meta(description="Nodes and rollout progress.")] = ProfileStatus()


class TelemetryProfile(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[TelemetryProfileSpec | None, Meta(description="Configuration and rollout options.")] = None
    status: Annotated[ProfileStatus, Meta(description="Nodes and rollout progress.")] = ProfileStatus()


# service objects


class ServiceObjectStatus(NullableStruct, frozen=True, omit_defaults=True):
    """Status that the service operator writes; Nodeyard only reads it."""

    hash: Annotated[
        StringMap,
        Meta(description="Hashes of deployed inputs; key `profile` is the deployed nodeyard.dev/profile-hash."),
    ] = {}
    conditions: Annotated[Slice[Condition], Meta(description="Condition Ready.")] = ()


class NovaExternalComputeSpec(NullableStruct, frozen=True):
    dataplane_node_name: Annotated[str, Meta(description="Name of the OpenStackDataPlaneNode.")] = ""
    compute_profile_name: Annotated[str, Meta(description="Name of the ComputeProfile.")] = ""
    nova_instance: Annotated[str, Meta(description="Name of the Nova; nova if empty.")] = ""
    cell_name: Annotated[str, Meta(description="Name of the cell; immutable once set.")] = ""
    custom_service_config: Annotated[str, Meta(description="Additional configuration; owned by the user.")] = ""
    default_config_overwrite: Annotated[
        StringMap, Meta(description="Files that replace default ones; owned by the user.")
    ] = {}
    inventory_config_map_name: Annotated[str, Meta(description="ConfigMap with the Ansible inventory.")] = ""
    ssh_key_secret_name: Annotated[str, Meta(description="Secret with the SSH key of Ansible.")] = ""
    deploy: Annotated[bool | None, Meta(description="False generates inputs without deploying; owned by the user.")] = (
        None
    )
    network_attachments: Annotated[Slice[str], Meta(description="Networks that Ansible runs are attached to.")] = ()


class NovaExternalCompute(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NovaExternalComputeSpec | None, Meta(description="Desired state.")] = None
    status: Annotated[ServiceObjectStatus, Meta(description="State that the service operator reports.")] = (
        ServiceObjectStatus()
    )


class OVNMetadataAgentSpec(PlainStruct, frozen=True):
    dataplane_node_name: Annotated[str, Meta(description="Name of the OpenStackDataPlaneNode.")] = ""
    network_profile_name: Annotated[str, Meta(description="Name of the NetworkProfile.")] = ""
    custom_service_config: Annotated[str, Meta(description="Additional configuration; owned by the user.")] = ""


class OVNMetadataAgent(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[OVNMetadataAgentSpec | None, Meta(description="Desired state.")] = None
    status: Annotated[ServiceObjectStatus, Meta(description="State that the service operator reports.")] = (
        ServiceObjectStatus()
    )


# services


class KindReference(PlainStruct, frozen=True):
    api_version: Annotated[str, Meta(description="Group and version, such as storage.example.com/v1.")] = ""
    kind: Annotated[str, Meta(description="Kind, such as StorageProfile.")] = ""


class ProfileServiceSpec(PlainStruct, frozen=True):
    annotation_key: Annotated[str, Meta(description="Annotation key on nodes and roles that names the profile.")] = ""
    profile: Annotated[KindReference, Meta(description="Kind of the profiles, in the namespace of the node.")] = (
        KindReference()
    )
    object: Annotated[
        KindReference | None, Meta(description="Kind of the service object created for a node; none if omitted.")
    ] = None
    node_field: Annotated[str, Meta(description="Field of the service object's spec for the name of the node.")] = ""
    profile_field: Annotated[
        str, Meta(description="Field of the service object's spec for the name of the profile.")
    ] = ""
    config_field: Annotated[str, Meta(description="Field of a profile's spec with the configuration.")] = ""
    config_format: Annotated[
        str,
        Meta(
            description="INI: the configuration is validated as oslo.config reads it. Text: it is not validated. INI "
            "if empty."
        ),
    ] = ""
    create_when_annotation: Annotated[
        str,
        Meta(
            description="The service object is created if the node or its role has this annotation with a value. If "
            "omitted, it is created wherever a profile resolves."
        ),
    ] = ""
    max_unavailable: Annotated[
        int | str | None,
        Meta(
            description="Number or percentage of a profile's objects that may be unavailable at once; 25% if omitted."
        ),
    ] = None
    progress_deadline_seconds: Annotated[
        int | None, Meta(description="Seconds after which a rollout without progress stops; 600 if omitted.")
    ] = None
    progress: Annotated[str, Meta(description=_PROGRESS)] = ""


class ProfileServiceStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="Generation of the spec that this status describes.")] = 0
    conditions: Annotated[Slice[Condition], Meta(description="Condition Ready.")] = ()


class ProfileService(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ProfileServiceSpec, Meta(description="Declaration of the service.")] = ProfileServiceSpec()
    status: Annotated[ProfileServiceStatus, Meta(description="Observed state.")] = ProfileServiceStatus()


def annotation_of(obj: OpenStackDataPlaneNode | OpenStackDataPlaneRole | None, key: str) -> str | None:
    """Return the value of an annotation, or None if it is missing; an empty value is a choice."""
    return None if obj is None else obj.metadata.annotations.get(key)
