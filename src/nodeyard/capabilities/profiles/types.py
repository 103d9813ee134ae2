"""Roles, nodes, profiles and service objects as the OpenStack operators had them, and ProfileService, which is ours.

No field that a node inherits from its role has a default in the schema: the server would fill it in, and the default
would then beat the role's value. Decoding is lenient: an object that a laxer schema let in gets a condition instead of
silence. A spec that is null counts as an empty one.
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
    """What a service's configuration is, and so what can be wrong with it."""

    INI = "INI"
    TEXT = "Text"


class Source(StrEnum):
    """Where a node's choice of a profile stands."""

    NODE = "Node"
    ROLE = "Role"
    SELECTOR = "Selector"


class State(StrEnum):
    """How a node's choice for a service stands."""

    RESOLVED = "Resolved"
    DISABLED = "Disabled"
    NONE = "None"
    NOT_FOUND = "NotFound"
    INVALID = "Invalid"
    AMBIGUOUS = "Ambiguous"


# the data plane


class NovaTemplate(PlainStruct, frozen=True):
    cell_name: Annotated[str, Meta(description="The cell; from the role if empty.")] = ""
    nova_instance: Annotated[str, Meta(description="The Nova; from the role if empty.")] = ""
    custom_service_config: Annotated[str, Meta(description="Further configuration; from the role if empty.")] = ""
    deploy: Annotated[bool | None, Meta(description="Whether to deploy; from the role if omitted.")] = None


class NetworkConfig(PlainStruct, frozen=True):
    template: Annotated[str, Meta(description="The template of the network configuration; from the role if empty.")] = (
        ""
    )


class NodeSection(NullableStruct, frozen=True):
    network_config: Annotated[NetworkConfig, Meta(description="How the host's network is set up.")] = NetworkConfig()
    networks: Annotated[Slice[Any], Meta(description="Networks of the host; the role's whole list if empty.")] = ()
    management_network: Annotated[str, Meta(description="The management network; from the role if empty.")] = ""
    ansible_user: Annotated[str, Meta(description="The user that Ansible logs in as; from the role if empty.")] = ""
    ansible_port: Annotated[int, Meta(description="The port that Ansible logs in at; from the role if 0.")] = 0
    ansible_vars: Annotated[
        str, Meta(description="YAML; its top-level keys are laid over the role's, one by one, not deeper.")
    ] = ""
    ansible_ssh_private_key_secret: Annotated[
        str, Meta(description="The Secret with Ansible's key; from the role if empty.")
    ] = msgspec.field(default="", name="ansibleSSHPrivateKeySecret")
    extra_mounts: Annotated[Slice[Any], Meta(description="Further mounts; the role's whole list if empty.")] = ()
    user_data: Annotated[Any, Meta(description="The Secret with user data.")] = None
    network_data: Annotated[Any, Meta(description="The Secret with network data.")] = None
    nova: Annotated[NovaTemplate | None, Meta(description="Nova's part; what is empty comes from the role.")] = None


class DeployStrategy(PlainStruct, frozen=True):
    deploy: Annotated[bool | None, Meta(description="Whether to deploy.")] = None
    ansible_tags: Annotated[str, Meta(description="Tags that are run; from the role if empty.")] = ""
    ansible_limit: Annotated[str, Meta(description="Hosts that it is limited to; from the role if empty.")] = ""
    ansible_skip_tags: Annotated[str, Meta(description="Tags that are skipped; from the role if empty.")] = ""


class RoleSpec(NullableStruct, frozen=True):
    data_plane: Annotated[str, Meta(description="The OpenStackDataPlane it belongs to.")] = ""
    baremetal_set_template: Annotated[Any, Meta(description="How bare metal hosts are provisioned.")] = None
    node_template: Annotated[
        NodeSection, Meta(description="What nodes of this role have if they say nothing else.")
    ] = NodeSection()
    pre_provisioned: Annotated[bool | None, Meta(description="Whether its hosts are provisioned already.")] = None
    env: Annotated[Slice[Any], Meta(description="Environment of the Ansible runs.")] = ()
    deploy_strategy: Annotated[DeployStrategy, Meta(description="How it is deployed.")] = DeployStrategy()
    network_attachments: Annotated[
        Slice[str], Meta(description="Networks that Ansible runs are attached to; nodes may not name others.")
    ] = ()
    services: Annotated[Slice[str], Meta(description="Services that are deployed on its nodes.")] = ()
    profile_update_policy: Annotated[
        str,
        Meta(
            description="Automatic: nodes follow a changed profile. Manual: they keep what they have until their own "
            "annotations change. From here where a node says nothing; Automatic if that is empty too."
        ),
    ] = ""


class NodeSpec(NullableStruct, frozen=True):
    host_name: Annotated[str, Meta(description="The host's name.")] = ""
    node: Annotated[NodeSection, Meta(description="What this node has; the rest comes from its role.")] = NodeSection()
    role: Annotated[str, Meta(description="The OpenStackDataPlaneRole in this namespace; none if empty.")] = ""
    ansible_host: Annotated[str, Meta(description="The address that Ansible logs in at.")] = ""
    env: Annotated[Slice[Any], Meta(description="Environment of the Ansible runs; the role's if empty.")] = ()
    deploy_strategy: Annotated[DeployStrategy, Meta(description="How it is deployed.")] = DeployStrategy()
    network_attachments: Annotated[
        Slice[str], Meta(description="Networks that Ansible runs are attached to; the same as the role's if both say.")
    ] = ()
    profile_update_policy: Annotated[
        str, Meta(description="Automatic or Manual, as on the role; the role's if empty.")
    ] = ""


class Choice(NullableStruct, frozen=True, omit_defaults=True):
    """One service of a node, as its status shows it."""

    value: Annotated[str, Meta(description="The profile chosen; empty where none is.")] = ""
    source: Annotated[str, Meta(description="Node, Role or Selector; empty where nobody chose.")] = ""
    state: Annotated[str, Meta(description="Resolved, Disabled, None, NotFound, Invalid or Ambiguous.")] = ""
    shadowed: Annotated[
        Slice[str], Meta(description="What was chosen further down and does not count, as source=profile.")
    ] = ()
    profile_uid: Annotated[str, Meta(description="The uid of the profile.")] = msgspec.field(
        default="", name="profileUID"
    )
    profile_generation: Annotated[int, Meta(description="The generation of the profile that the node has.")] = 0
    hash: Annotated[str, Meta(description="The hash of the configuration that the node has.")] = ""
    message: Annotated[str, Meta(description="What is wrong, or waited for.")] = ""


class NodeStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status is about.")] = 0
    profiles: Annotated[dict[str, Choice], Meta(description="What each service of the node is, by service.")] = {}
    unknown_profiles: Annotated[
        Slice[str], Meta(description="Annotations that look like a choice, of services that nobody has declared.")
    ] = ()
    effective: Annotated[Any, Meta(description="What the node has after inheriting from its role.")] = None
    conditions: Annotated[
        Slice[Condition], Meta(description="Ready, RoleReady, ProfilesReady, RolloutDone and ServicesKnown.")
    ] = ()


class OpenStackDataPlaneNode(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NodeSpec | None, Meta(description="What is wanted.")] = None
    status: Annotated[NodeStatus, Meta(description="What is.")] = NodeStatus()

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
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status is about.")] = 0
    node_count: Annotated[int, Meta(description="How many nodes have this role.")] = 0
    conditions: Annotated[Slice[Condition], Meta(description="Ready.")] = ()


class OpenStackDataPlaneRole(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[RoleSpec | None, Meta(description="What is wanted.")] = None
    status: Annotated[RoleStatus, Meta(description="What is.")] = RoleStatus()

    @property
    def wanted(self) -> RoleSpec:
        return self.spec or RoleSpec()


# profiles


class ProfileSpec(PlainStruct, frozen=True):
    """What the profiles of all services have; the configuration itself is in a field of the service's choice."""

    max_unavailable: Annotated[
        int | str | None,
        Meta(description="How many of its service objects a rollout may disturb at once: a number or a share, 25%."),
    ] = None
    progress_deadline_seconds: Annotated[
        int | None, Meta(description="When a rollout that does not get on stops; 600 if omitted.")
    ] = None
    render_as: Annotated[
        str, Meta(description="ConfigMap or Secret: what the configuration of a node is kept in; ConfigMap if empty.")
    ] = ""
    node_selector: Annotated[
        StringMap | None,
        Meta(description="Nodes with these labels have this profile if neither they nor their role choose one."),
    ] = None
    priority: Annotated[
        int, Meta(description="Among selecting profiles the highest wins; two of them are an error.")
    ] = 0


class ComputeProfileSpec(ProfileSpec, frozen=True):
    custom_compute_service_config: Annotated[
        str, Meta(description="Nova's configuration as INI text, kept byte for byte.")
    ] = ""


class NetworkProfileSpec(ProfileSpec, frozen=True):
    custom_service_config: Annotated[
        str, Meta(description="Neutron's configuration as INI text, kept byte for byte.")
    ] = ""


class TelemetryProfileSpec(ProfileSpec, frozen=True):
    custom_service_config: Annotated[str, Meta(description="The configuration of telemetry, kept byte for byte.")] = ""


class ProfileStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status is about.")] = 0
    node_count: Annotated[int, Meta(description="How many nodes have this profile.")] = 0
    nodes: Annotated[Slice[str], Meta(description="The first 100 of them by name.")] = ()
    updated: Annotated[int, Meta(description="How many have it as it is now.")] = 0
    available: Annotated[int, Meta(description="How many run with it, as their service operator says.")] = 0
    hash: Annotated[str, Meta(description="The hash of its configuration.")] = ""
    conditions: Annotated[Slice[Condition], Meta(description="Ready and Progressing.")] = ()


class ComputeProfile(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ComputeProfileSpec | None, Meta(description="The profile.")] = None
    status: Annotated[ProfileStatus, Meta(description="Who has it.")] = ProfileStatus()


class NetworkProfile(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NetworkProfileSpec | None, Meta(description="The profile.")] = None
    status: Annotated[ProfileStatus, Meta(description="Who has it.")] = ProfileStatus()


class TelemetryProfile(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[TelemetryProfileSpec | None, Meta(description="The profile.")] = None
    status: Annotated[ProfileStatus, Meta(description="Who has it.")] = ProfileStatus()


# service objects


class ServiceObjectStatus(NullableStruct, frozen=True, omit_defaults=True):
    """Written by the service's operator, not by us."""

    hash: Annotated[
        StringMap, Meta(description="What its operator has deployed; `profile` is the hash that we asked for.")
    ] = {}
    conditions: Annotated[Slice[Condition], Meta(description="Ready.")] = ()


class NovaExternalComputeSpec(NullableStruct, frozen=True):
    dataplane_node_name: Annotated[str, Meta(description="The OpenStackDataPlaneNode it runs on.")] = ""
    compute_profile_name: Annotated[str, Meta(description="The ComputeProfile it has.")] = ""
    nova_instance: Annotated[str, Meta(description="The Nova it belongs to; nova if empty.")] = ""
    cell_name: Annotated[str, Meta(description="The cell it belongs to; cannot change.")] = ""
    custom_service_config: Annotated[str, Meta(description="Further configuration; yours, never written by us.")] = ""
    default_config_overwrite: Annotated[StringMap, Meta(description="Files that replace default ones; yours.")] = {}
    inventory_config_map_name: Annotated[str, Meta(description="The ConfigMap with Ansible's inventory.")] = ""
    ssh_key_secret_name: Annotated[str, Meta(description="The Secret with Ansible's key.")] = ""
    deploy: Annotated[bool | None, Meta(description="Whether to deploy, or only to generate; yours.")] = None
    network_attachments: Annotated[Slice[str], Meta(description="Networks that Ansible runs are attached to.")] = ()


class NovaExternalCompute(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NovaExternalComputeSpec | None, Meta(description="What is wanted.")] = None
    status: Annotated[ServiceObjectStatus, Meta(description="What its operator has done.")] = ServiceObjectStatus()


class OVNMetadataAgentSpec(PlainStruct, frozen=True):
    dataplane_node_name: Annotated[str, Meta(description="The OpenStackDataPlaneNode it runs on.")] = ""
    network_profile_name: Annotated[str, Meta(description="The NetworkProfile it has.")] = ""
    custom_service_config: Annotated[str, Meta(description="Further configuration; yours, never written by us.")] = ""


class OVNMetadataAgent(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[OVNMetadataAgentSpec | None, Meta(description="What is wanted.")] = None
    status: Annotated[ServiceObjectStatus, Meta(description="What its operator has done.")] = ServiceObjectStatus()


# services


class KindReference(PlainStruct, frozen=True):
    api_version: Annotated[str, Meta(description="Group and version.")] = ""
    kind: Annotated[str, Meta(description="The kind.")] = ""


class ProfileServiceSpec(PlainStruct, frozen=True):
    annotation_key: Annotated[str, Meta(description="The annotation of nodes and roles that names the profile.")] = ""
    profile: Annotated[KindReference, Meta(description="The kind of its profiles, in the node's namespace.")] = (
        KindReference()
    )
    object: Annotated[
        KindReference | None, Meta(description="The kind of the object that is made for a node; none if omitted.")
    ] = None
    node_field: Annotated[str, Meta(description="The field of that object's spec that holds the node's name.")] = ""
    profile_field: Annotated[
        str, Meta(description="The field of that object's spec that holds the profile's name.")
    ] = ""
    config_field: Annotated[str, Meta(description="The field of a profile's spec that holds the configuration.")] = ""
    config_format: Annotated[
        str,
        Meta(
            description="INI: the configuration is checked as oslo.config reads it. Text: it is taken as it is. INI if "
            "empty."
        ),
    ] = ""
    create_when_annotation: Annotated[
        str,
        Meta(
            description="The object is made where the node or its role has this annotation, not empty; if this is "
            "omitted, where a profile resolves."
        ),
    ] = ""
    max_unavailable: Annotated[
        int | str | None,
        Meta(description="How many objects of a profile a rollout may disturb at once, 25% if omitted."),
    ] = None
    progress_deadline_seconds: Annotated[
        int | None, Meta(description="When a rollout that does not get on stops; 600 if omitted.")
    ] = None


class ProfileServiceStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status is about.")] = 0
    conditions: Annotated[Slice[Condition], Meta(description="Ready.")] = ()


class ProfileService(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ProfileServiceSpec, Meta(description="The service.")] = ProfileServiceSpec()
    status: Annotated[ProfileServiceStatus, Meta(description="Whether it is taken into account.")] = (
        ProfileServiceStatus()
    )


def annotation_of(obj: OpenStackDataPlaneNode | OpenStackDataPlaneRole | None, key: str) -> str | None:
    """What an object's annotation says; None where it does not have it, which is not the same as empty."""
    return None if obj is None else obj.metadata.annotations.get(key)
