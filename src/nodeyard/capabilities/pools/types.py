"""LatticeCluster, LatticeNodeClass and LatticeService: the design's fields, and ours, all of them opt-in.

Decoding is lenient on purpose: an object that a laxer schema let in must still decode, so that it gets a condition
instead of silence.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodeyard.capabilities.pools import names
from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Condition, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap


class DeletionPolicy(StrEnum):
    DRAIN = "Drain"
    ORPHAN = "Orphan"
    FORCE = "Force"


class Pivot(StrEnum):
    SELF = "Self"
    NEVER = "Never"


class Autoscaling(StrEnum):
    NONE = "None"
    CLUSTER_AUTOSCALER = "ClusterAutoscaler"


class Phase(StrEnum):
    """Of a LatticeCluster."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    PIVOTING = "Pivoting"
    READY = "Ready"
    FAILED = "Failed"
    DELETING = "Deleting"


class PoolPhase(StrEnum):
    PENDING = "Pending"
    SCALING = "Scaling"
    ROLLING = "Rolling"
    READY = "Ready"
    DRAINING = "Draining"
    DELETING = "Deleting"
    BLOCKED = "Blocked"
    PAUSED = "Paused"


# provider


class KubernetesSpec(NullableStruct, frozen=True):
    version: Annotated[
        str, Meta(description="The Kubernetes version, as 1.32.0 or v1.32.0. One minor version at a time upwards.")
    ] = ""
    cert_sans: Annotated[
        Slice[str], Meta(description="Further names and addresses in the API server's certificate.")
    ] = msgspec.field(default=(), name="certSANs")
    bootstrap: Annotated[str, Meta(description="How machines become nodes; only kubeadm is supported.")] = "kubeadm"


class AwsConfig(NullableStruct, frozen=True):
    region: Annotated[str, Meta(description="The AWS region of the cluster.")] = ""
    ssh_key_name: Annotated[
        str | None, Meta(description="The EC2 key pair of the machines. Omitted: CAPA's default; empty: none.")
    ] = None
    ami_id: Annotated[
        str, Meta(description="The image of machines whose class names none; CAPA looks one up if empty.")
    ] = ""
    vpc_id: Annotated[str, Meta(description="An existing VPC; CAPA makes one if empty.")] = ""
    subnet_ids: Annotated[Slice[str], Meta(description="Existing subnets; CAPA makes them if empty.")] = ()
    cp_instance_type: Annotated[str, Meta(description="The instance type of control plane machines.")] = ""
    cp_root_volume_size: Annotated[
        int | None, Meta(description="The root volume of control plane machines in GiB.")
    ] = None


class DockerConfig(PlainStruct, frozen=True):
    image: Annotated[
        str, Meta(description="The node image of machines whose class names none; by version if empty.")
    ] = ""


class ProxmoxConfig(NullableStruct, frozen=True):
    source_node: Annotated[str, Meta(description="The Proxmox node whose template is cloned.")] = ""
    template_id: Annotated[
        int | None, Meta(description="The id of the VM template of machines whose class names none.")
    ] = msgspec.field(default=None, name="templateId")
    storage: Annotated[str, Meta(description="The storage that disks are made on.")] = ""
    bridge: Annotated[str, Meta(description="The network bridge; vmbr0 if empty.")] = ""
    allowed_nodes: Annotated[Slice[str], Meta(description="The Proxmox nodes that machines may be placed on.")] = ()
    dns_servers: Annotated[Slice[str], Meta(description="Name servers of the machines.")] = ()
    ipv4_addresses: Annotated[
        Slice[str], Meta(description="Addresses, ranges or CIDRs that machines get theirs from.")
    ] = ()
    ipv4_prefix: Annotated[int | None, Meta(description="The prefix length of their network; 24 if omitted.")] = None
    ipv4_gateway: Annotated[str, Meta(description="Their gateway.")] = ""
    control_plane_endpoint: Annotated[str, Meta(description="The address under which the API server is reached.")] = ""
    cp_sockets: Annotated[int | None, Meta(description="CPU sockets of control plane machines.")] = None
    cp_cores: Annotated[int | None, Meta(description="CPU cores of control plane machines.")] = None
    cp_memory_mib: Annotated[int | None, Meta(description="Memory of control plane machines in MiB.")] = None
    cp_disk_size_gb: Annotated[int | None, Meta(description="Disk of control plane machines in GB.")] = None
    worker_sockets: Annotated[int | None, Meta(description="CPU sockets of workers whose class names none.")] = None
    worker_cores: Annotated[int | None, Meta(description="CPU cores of workers whose class names none.")] = None
    worker_memory_mib: Annotated[int | None, Meta(description="Memory of workers in MiB whose class names none.")] = (
        None
    )
    worker_disk_size_gb: Annotated[int | None, Meta(description="Disk of workers in GB whose class names none.")] = None


class ProviderConfig(PlainStruct, frozen=True):
    aws: Annotated[AwsConfig | None, Meta(description="Machines are EC2 instances (CAPA).")] = None
    docker: Annotated[
        DockerConfig | None, Meta(description="Machines are containers on one host (CAPD), for development.")
    ] = None
    proxmox: Annotated[ProxmoxConfig | None, Meta(description="Machines are Proxmox VMs (CAPMOX).")] = None
    openstack: Annotated[Any, Meta(description="Not supported: refused with a message.")] = None

    @property
    def name(self) -> str:
        """The provider that is configured; empty where none or several are."""
        given = [name for name in PROVIDERS if getattr(self, name) is not None]
        return given[0] if len(given) == 1 and self.openstack is None else ""


PROVIDERS = ("aws", "docker", "proxmox")


class SecretReference(PlainStruct, frozen=True):
    name: Annotated[str, Meta(description="The Secret's name.")] = ""
    namespace: Annotated[str, Meta(description="The Secret's namespace; that of the cluster's objects if empty.")] = ""


class ProviderSpec(PlainStruct, frozen=True):
    kubernetes: Annotated[KubernetesSpec, Meta(description="The Kubernetes that is installed.")] = KubernetesSpec()
    config: Annotated[ProviderConfig, Meta(description="Where machines come from: exactly one.")] = ProviderConfig()
    credentials_secret_ref: Annotated[
        SecretReference | None, Meta(description="What the provider authenticates with. Referred to, never read.")
    ] = None


# nodes


class PoolTaint(PlainStruct, frozen=True):
    key: Annotated[str, Meta(description="The taint's key.")] = ""
    value: Annotated[str, Meta(description="The taint's value; often empty.")] = ""
    effect: Annotated[str, Meta(description="NoSchedule, PreferNoSchedule or NoExecute.")] = ""


class WorkerPool(NullableStruct, frozen=True):
    display_name: Annotated[str, Meta(description="A name for people; may change at any time and touches no node.")] = (
        ""
    )
    replicas: Annotated[int, Meta(description="How many nodes the pool shall have.")] = 0
    node_class: Annotated[
        str, Meta(description="The LatticeNodeClass that its machines are of; the provider's default if empty.")
    ] = ""
    labels: Annotated[
        StringMap,
        Meta(
            description="Labels of its nodes. Those under node-role.kubernetes.io, node-restriction.kubernetes.io and "
            "node.cluster.x-k8s.io change in place; any other change replaces the nodes, one at a time."
        ),
    ] = {}
    taints: Annotated[Slice[PoolTaint], Meta(description="Taints of its nodes. A change replaces the nodes.")] = ()
    min: Annotated[
        int | None, Meta(description="The least number of nodes; used only with autoscaling: ClusterAutoscaler.")
    ] = None
    max: Annotated[
        int | None, Meta(description="The greatest number of nodes; used only with autoscaling: ClusterAutoscaler.")
    ] = None


class NodesSpec(PlainStruct, frozen=True):
    control_plane: Annotated[int, Meta(description="How many control plane machines there are; odd.")] = 0
    workers: Annotated[
        int | None, Meta(description="How many workers there are, as one pool named default. Not beside workerPools.")
    ] = None
    worker_pools: Annotated[
        dict[str, WorkerPool] | None,
        Meta(description="Worker pools by id. The id never changes: another id is another pool."),
    ] = None


class Networking(PlainStruct, frozen=True):
    pod_cidrs: Annotated[
        tuple[str, ...] | None, Meta(description="Address ranges of pods; 192.168.0.0/16 if omitted.")
    ] = msgspec.field(default=None, name="podCIDRs")
    service_cidrs: Annotated[
        tuple[str, ...] | None, Meta(description="Address ranges of services; 10.128.0.0/12 if omitted.")
    ] = msgspec.field(default=None, name="serviceCIDRs")
    service_domain: Annotated[str, Meta(description="The DNS domain of services; cluster.local if empty.")] = ""
    default: Annotated[
        Any, Meta(description="Lattice's pool of load balancer addresses: {cidr}. Kept, not acted on.")
    ] = None


class LatticeClusterSpec(PlainStruct, frozen=True):
    provider: Annotated[ProviderSpec, Meta(description="What the cluster runs on.")] = ProviderSpec()
    nodes: Annotated[NodesSpec, Meta(description="The control plane and the workers.")] = NodesSpec()
    networking: Annotated[Networking, Meta(description="Addresses of pods and services.")] = Networking()
    pool_deletion_policy: Annotated[
        str,
        Meta(
            description="What happens to a pool that is taken out. Drain: its pods are evicted within their budgets, "
            "and its machines go when it is empty, never before. Orphan: its machines go, Cluster API evicts pods for "
            "at most poolDrainTimeout. Force: its machines go at once. All of them delete the machines."
        ),
    ] = DeletionPolicy.DRAIN.value
    pool_drain_timeout: Annotated[
        int,
        Meta(
            description="Seconds after which a drain that is not done is reported as blocked, with the pods and "
            "budgets in its way; it goes on trying. 0: never."
        ),
    ] = 300
    pivot: Annotated[
        str,
        Meta(
            description="Self: the cluster takes over its own Cluster API objects, and workers start after that. "
            "Never: they stay here, and workers start when the control plane runs."
        ),
    ] = Pivot.SELF.value
    autoscaling: Annotated[
        str,
        Meta(
            description="None: pools have the replicas they say. ClusterAutoscaler: it scales them between min and max."
        ),
    ] = Autoscaling.NONE.value
    parent_config: Annotated[Any, Meta(description="Lattice's own; kept, not acted on.")] = None
    environment: Annotated[str, Meta(description="Lattice's own; kept, not acted on.")] = ""
    region: Annotated[str, Meta(description="Lattice's own; kept, not acted on.")] = ""
    workload: Annotated[Any, Meta(description="Lattice's own; kept, not acted on.")] = None


# status


class BlockingPod(PlainStruct, frozen=True):
    pod: Annotated[str, Meta(description="Its namespace and name.")] = ""
    node: Annotated[str, Meta(description="The node it runs on.")] = ""
    message: Annotated[str, Meta(description="Why it could not be evicted, in the API server's words.")] = ""


class WorkerPoolStatus(NullableStruct, frozen=True, omit_defaults=True):
    desired: Annotated[int, Meta(description="Replicas wanted.")] = 0
    ready: Annotated[int, Meta(description="Replicas whose machine is ready.")] = 0
    available: Annotated[int, Meta(description="Replicas that have been ready for long enough.")] = 0
    node_class: Annotated[str, Meta(description="The class of the template in use.")] = ""
    replicas: Annotated[int, Meta(description="Replicas there are.")] = 0
    up_to_date: Annotated[int, Meta(description="Replicas made from the template in use.")] = 0
    phase: Annotated[
        str, Meta(description="Pending, Scaling, Rolling, Ready, Draining, Deleting, Blocked or Paused.")
    ] = ""
    message: Annotated[str, Meta(description="What the pool is doing or waiting for.")] = ""
    machine_deployment: Annotated[str, Meta(description="The MachineDeployment of the pool.")] = ""
    version: Annotated[str, Meta(description="The Kubernetes version that its machines shall have.")] = ""
    blocking_pods: Annotated[Slice[BlockingPod], Meta(description="The first 50 pods that a drain waits for.")] = ()


class LatticeClusterStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status is about.")] = 0
    phase: Annotated[str, Meta(description="Pending, Provisioning, Pivoting, Ready, Failed or Deleting.")] = ""
    message: Annotated[str, Meta(description="What the cluster is doing or waiting for.")] = ""
    version: Annotated[str, Meta(description="The Kubernetes version of the control plane.")] = ""
    ready_control_plane: Annotated[int, Meta(description="Control plane machines that are ready.")] = 0
    ready_workers: Annotated[int, Meta(description="Workers that are ready.")] = 0
    workers: Annotated[int, Meta(description="Workers wanted.")] = 0
    pivoted: Annotated[bool, Meta(description="Whether the cluster has its own Cluster API objects.")] = False
    worker_pools: Annotated[dict[str, WorkerPoolStatus], Meta(description="How each pool is, by id.")] = {}
    conditions: Annotated[
        Slice[Condition], Meta(description="Ready, Accepted, Provisioned, PoolsDrained and VersionCurrent.")
    ] = ()


class LatticeCluster(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[LatticeClusterSpec, Meta(description="What is wanted.")] = LatticeClusterSpec()
    status: Annotated[LatticeClusterStatus, Meta(description="What is.")] = LatticeClusterStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_paused(self) -> bool:
        return self.metadata.annotations.get(PAUSED) == names.TRUE

    @property
    def version(self) -> str:
        """With its v, as Cluster API writes it."""
        return f"v{self.spec.provider.kubernetes.version.removeprefix('v')}"

    @property
    def policy(self) -> DeletionPolicy:
        """Drain where it is none that we know: the one that takes nothing away."""
        policy = self.spec.pool_deletion_policy
        return DeletionPolicy(policy) if policy in list(DeletionPolicy) else DeletionPolicy.DRAIN

    @property
    def is_autoscaled(self) -> bool:
        return self.spec.autoscaling == Autoscaling.CLUSTER_AUTOSCALER


def resolved_pools(nodes: NodesSpec) -> dict[str, WorkerPool]:
    """The pools by id, in their order; `workers` is the pool `default`."""
    if nodes.worker_pools is not None:
        return dict(sorted(nodes.worker_pools.items()))
    return {} if nodes.workers is None else {names.DEFAULT_POOL: WorkerPool(replicas=nodes.workers)}


def total_workers(nodes: NodesSpec) -> int:
    return sum(pool.replicas for pool in resolved_pools(nodes).values())


# classes


class Mount(PlainStruct, frozen=True):
    container_path: Annotated[str, Meta(description="Where it appears in the machine.")] = ""
    host_path: Annotated[str, Meta(description="What is mounted from the host.")] = ""
    read_only: Annotated[bool, Meta(description="Whether it may not be written.")] = False


class DockerClass(NullableStruct, frozen=True):
    image: Annotated[str, Meta(description="The node image.")] = ""
    extra_mounts: Annotated[Slice[Mount], Meta(description="Further mounts.")] = ()
    memory: Annotated[str | int, Meta(description="Accepted and without effect: CAPD has no such setting.")] = ""
    cpus: Annotated[str | int, Meta(description="Accepted and without effect: CAPD has no such setting.")] = ""


class AwsClass(PlainStruct, frozen=True):
    instance_type: Annotated[str, Meta(description="The instance type; t3.medium if empty.")] = ""
    ami: Annotated[str, Meta(description="The image; that of the cluster if empty.")] = ""
    root_volume_size: Annotated[int | None, Meta(description="The root volume in GiB; 100 if omitted.")] = None


class ProxmoxClass(NullableStruct, frozen=True):
    cores: Annotated[int | None, Meta(description="CPU cores.")] = None
    sockets: Annotated[int | None, Meta(description="CPU sockets.")] = None
    memory: Annotated[
        str, Meta(description="Memory as a quantity, such as 16Gi; rounded up to a multiple of 8 MiB.")
    ] = ""
    template: Annotated[str, Meta(description="The tag of the VM template to clone.")] = ""
    template_id: Annotated[int | None, Meta(description="The id of the VM template to clone.")] = msgspec.field(
        default=None, name="templateId"
    )
    disk_size_gb: Annotated[int | None, Meta(description="The disk in GB.")] = None


class ClassProviders(PlainStruct, frozen=True):
    aws: Annotated[AwsClass | None, Meta(description="The machine on AWS.")] = None
    docker: Annotated[DockerClass | None, Meta(description="The machine on Docker.")] = None
    proxmox: Annotated[ProxmoxClass | None, Meta(description="The machine on Proxmox.")] = None


class LatticeNodeClassSpec(PlainStruct, frozen=True):
    providers: Annotated[ClassProviders, Meta(description="The machine on each provider that has it.")] = (
        ClassProviders()
    )
    resources: Annotated[Any, Meta(description="cores, memoryGi and storageGi, for people and for scheduling.")] = None
    cost_per_hour: Annotated[Any, Meta(description="What an hour costs, by provider, for people.")] = None


class LatticeNodeClassStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status is about.")] = 0
    pools: Annotated[Slice[str], Meta(description="The first 50 pools that name it, as cluster/pool.")] = ()
    conditions: Annotated[Slice[Condition], Meta(description="Ready.")] = ()


class LatticeNodeClass(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[LatticeNodeClassSpec, Meta(description="The machine.")] = LatticeNodeClassSpec()
    status: Annotated[LatticeNodeClassStatus, Meta(description="Who uses it.")] = LatticeNodeClassStatus()


# services


class ServiceToleration(PlainStruct, frozen=True):
    key: Annotated[str, Meta(description="The taint key; with operator Exists, empty for all.")] = ""
    operator: Annotated[str, Meta(description="Equal, which is the default, or Exists.")] = ""
    value: Annotated[str, Meta(description="The value, for Equal.")] = ""
    effect: Annotated[str, Meta(description="The effect; empty for all.")] = ""


class Placement(NullableStruct, frozen=True):
    node_selector: Annotated[StringMap, Meta(description="Labels that a pool must give its nodes.")] = {}
    tolerations: Annotated[Slice[ServiceToleration], Meta(description="Taints of pools that the service bears.")] = ()


class LatticeServiceSpec(PlainStruct, frozen=True):
    placement: Annotated[Placement, Meta(description="What a pool must be for the service.")] = Placement()


class PlacedPool(PlainStruct, frozen=True):
    cluster: Annotated[str, Meta(description="The LatticeCluster.")] = ""
    worker_pool: Annotated[str, Meta(description="The pool's id.")] = ""
    node_class: Annotated[str, Meta(description="The pool's class.")] = ""
    replicas: Annotated[int, Meta(description="How many nodes it shall have.")] = 0


class RefusedPool(PlainStruct, frozen=True):
    cluster: Annotated[str, Meta(description="The LatticeCluster.")] = ""
    worker_pool: Annotated[str, Meta(description="The pool's id.")] = ""
    reason: Annotated[str, Meta(description="Why not, in one word.")] = ""
    message: Annotated[str, Meta(description="Why not: the label or taint that refused it.")] = ""


class LatticeServiceStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status is about.")] = 0
    phase: Annotated[str, Meta(description="Placed or Unplaced.")] = ""
    message: Annotated[str, Meta(description="How many pools fit, or why none does.")] = ""
    placements: Annotated[Slice[PlacedPool], Meta(description="The first 50 pools that fit.")] = ()
    refused: Annotated[Slice[RefusedPool], Meta(description="The first 50 pools that do not fit.")] = ()
    conditions: Annotated[Slice[Condition], Meta(description="Placed.")] = ()


class LatticeService(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[LatticeServiceSpec, Meta(description="What is wanted.")] = LatticeServiceSpec()
    status: Annotated[LatticeServiceStatus, Meta(description="Which pools fit.")] = LatticeServiceStatus()
