"""Types of LatticeCluster, LatticeNodeClass and LatticeService: the design's fields and opt-in fields of Nodeyard.

Decoding is lenient on purpose: an object that passed an older, laxer schema must still decode, so that it gets a
condition instead of silence.
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
    """The phases of a LatticeCluster."""

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
        str,
        Meta(description="The Kubernetes version, such as 1.32.0 or v1.32.0. Upgrades go one minor version at a time."),
    ] = ""
    cert_sans: Annotated[
        Slice[str], Meta(description="Additional DNS names and IP addresses in the API server's certificate.")
    ] = msgspec.field(default=(), name="certSANs")
    bootstrap: Annotated[str, Meta(description="The bootstrap provider; only kubeadm is supported.")] = "kubeadm"


class AwsConfig(NullableStruct, frozen=True):
    region: Annotated[str, Meta(description="The AWS region of the cluster.")] = ""
    ssh_key_name: Annotated[
        str | None, Meta(description="The EC2 key pair of the machines. Omitted: CAPA's default; empty: none.")
    ] = None
    ami_id: Annotated[
        str, Meta(description="The default AMI for machines whose class sets none; if empty, CAPA looks one up.")
    ] = ""
    vpc_id: Annotated[str, Meta(description="An existing VPC; if empty, CAPA creates one.")] = ""
    subnet_ids: Annotated[Slice[str], Meta(description="Existing subnets; if empty, CAPA creates them.")] = ()
    cp_instance_type: Annotated[str, Meta(description="The instance type of control plane machines.")] = ""
    cp_root_volume_size: Annotated[
        int | None, Meta(description="The root volume size of control plane machines in GiB.")
    ] = None


class DockerConfig(PlainStruct, frozen=True):
    image: Annotated[
        str,
        Meta(
            description="The default node image for machines whose class sets none; if empty, the image of the "
            "Kubernetes version."
        ),
    ] = ""


class ProxmoxConfig(NullableStruct, frozen=True):
    source_node: Annotated[str, Meta(description="The Proxmox node that holds the VM template to clone.")] = ""
    template_id: Annotated[
        int | None, Meta(description="The default VM template id for machines whose class sets none.")
    ] = msgspec.field(default=None, name="templateId")
    storage: Annotated[str, Meta(description="The storage on which disks are created.")] = ""
    bridge: Annotated[str, Meta(description="The network bridge; defaults to vmbr0.")] = ""
    allowed_nodes: Annotated[Slice[str], Meta(description="The Proxmox nodes on which machines may run.")] = ()
    dns_servers: Annotated[Slice[str], Meta(description="DNS servers of the machines.")] = ()
    ipv4_addresses: Annotated[
        Slice[str], Meta(description="Addresses, ranges or CIDRs from which machines get their addresses.")
    ] = ()
    ipv4_prefix: Annotated[
        int | None, Meta(description="The prefix length of the machine network; defaults to 24.")
    ] = None
    ipv4_gateway: Annotated[str, Meta(description="The gateway of the machine network.")] = ""
    control_plane_endpoint: Annotated[str, Meta(description="The address of the API server endpoint.")] = ""
    cp_sockets: Annotated[int | None, Meta(description="CPU sockets of control plane machines.")] = None
    cp_cores: Annotated[int | None, Meta(description="CPU cores of control plane machines.")] = None
    cp_memory_mib: Annotated[int | None, Meta(description="Memory of control plane machines in MiB.")] = None
    cp_disk_size_gb: Annotated[int | None, Meta(description="Disk of control plane machines in GB.")] = None
    worker_sockets: Annotated[
        int | None, Meta(description="Default CPU sockets for workers whose class sets none.")
    ] = None
    worker_cores: Annotated[int | None, Meta(description="Default CPU cores for workers whose class sets none.")] = None
    worker_memory_mib: Annotated[
        int | None, Meta(description="Default memory in MiB for workers whose class sets none.")
    ] = None
    worker_disk_size_gb: Annotated[
        int | None, Meta(description="Default disk in GB for workers whose class sets none.")
    ] = None


class ProviderConfig(PlainStruct, frozen=True):
    aws: Annotated[AwsConfig | None, Meta(description="Machines are EC2 instances (CAPA).")] = None
    docker: Annotated[
        DockerConfig | None, Meta(description="Machines are containers on one host (CAPD), for development.")
    ] = None
    proxmox: Annotated[ProxmoxConfig | None, Meta(description="Machines are Proxmox VMs (CAPMOX).")] = None
    openstack: Annotated[Any, Meta(description="Not supported: a cluster that sets it is rejected.")] = None

    @property
    def name(self) -> str:
        """The configured provider; empty if none or several are set."""
        given = [name for name in PROVIDERS if getattr(self, name) is not None]
        return given[0] if len(given) == 1 and self.openstack is None else ""


PROVIDERS = ("aws", "docker", "proxmox")


class SecretReference(PlainStruct, frozen=True):
    name: Annotated[str, Meta(description="The Secret's name.")] = ""
    namespace: Annotated[str, Meta(description="The Secret's namespace; defaults to capi-<cluster>.")] = ""


class ProviderSpec(PlainStruct, frozen=True):
    kubernetes: Annotated[KubernetesSpec, Meta(description="The Kubernetes version and bootstrap settings.")] = (
        KubernetesSpec()
    )
    config: Annotated[ProviderConfig, Meta(description="The infrastructure provider: exactly one.")] = ProviderConfig()
    credentials_secret_ref: Annotated[
        SecretReference | None,
        Meta(description="The Secret with the provider's credentials. Nodeyard only references it and never reads it."),
    ] = None


# nodes


class PoolTaint(PlainStruct, frozen=True):
    key: Annotated[str, Meta(description="The taint's key.")] = ""
    value: Annotated[str, Meta(description="The taint's value; may be empty.")] = ""
    effect: Annotated[str, Meta(description="NoSchedule, PreferNoSchedule or NoExecute.")] = ""


class WorkerPool(NullableStruct, frozen=True):
    display_name: Annotated[str, Meta(description="A human-readable name; changing it affects no node.")] = ""
    replicas: Annotated[int, Meta(description="The desired number of nodes.")] = 0
    node_class: Annotated[
        str, Meta(description="The LatticeNodeClass of its machines; if empty, the provider's default.")
    ] = ""
    labels: Annotated[
        StringMap,
        Meta(
            description="Labels of its nodes. Labels under node-role.kubernetes.io, node-restriction.kubernetes.io and "
            "node.cluster.x-k8s.io change in place; any other change replaces the nodes, one at a time."
        ),
    ] = {}
    taints: Annotated[Slice[PoolTaint], Meta(description="Taints of its nodes. A change replaces the nodes.")] = ()
    min: Annotated[
        int | None, Meta(description="The minimum number of nodes; used only with autoscaling: ClusterAutoscaler.")
    ] = None
    max: Annotated[
        int | None, Meta(description="The maximum number of nodes; used only with autoscaling: ClusterAutoscaler.")
    ] = None


class NodesSpec(PlainStruct, frozen=True):
    control_plane: Annotated[int, Meta(description="The desired number of control plane machines; must be odd.")] = 0
    workers: Annotated[
        int | None, Meta(description="The desired number of workers, as one pool named default. Excludes workerPools.")
    ] = None
    worker_pools: Annotated[
        dict[str, WorkerPool] | None,
        Meta(description="Worker pools by id. A new id is a new pool; ids cannot be renamed."),
    ] = None


class Networking(PlainStruct, frozen=True):
    pod_cidrs: Annotated[tuple[str, ...] | None, Meta(description="CIDRs of pods; defaults to 192.168.0.0/16.")] = (
        msgspec.field(default=None, name="podCIDRs")
    )
    service_cidrs: Annotated[
        tuple[str, ...] | None, Meta(description="CIDRs of services; defaults to 10.128.0.0/12.")
    ] = msgspec.field(default=None, name="serviceCIDRs")
    service_domain: Annotated[str, Meta(description="The DNS domain of services; defaults to cluster.local.")] = ""
    default: Annotated[
        Any, Meta(description="Lattice's pool of load balancer addresses: {cidr}. Stored and ignored.")
    ] = None


class LatticeClusterSpec(PlainStruct, frozen=True):
    provider: Annotated[ProviderSpec, Meta(description="The infrastructure provider and the Kubernetes version.")] = (
        ProviderSpec()
    )
    nodes: Annotated[NodesSpec, Meta(description="The control plane and the workers.")] = NodesSpec()
    networking: Annotated[Networking, Meta(description="The pod and service networks.")] = Networking()
    pool_deletion_policy: Annotated[
        str,
        Meta(
            description="What happens to a pool that is removed from the spec. Drain: its pods are evicted within "
            "their PodDisruptionBudgets, and its machines are deleted only once it is empty. Orphan: its machines are "
            "deleted, and Cluster API evicts pods for at most poolDrainTimeout. Force: its machines are deleted "
            "without a drain. All policies delete the machines."
        ),
    ] = DeletionPolicy.DRAIN.value
    pool_drain_timeout: Annotated[
        int,
        Meta(
            description="Seconds after which an unfinished drain is reported as blocked, with the pods and "
            "PodDisruptionBudgets that block it; evictions are still retried. 0: never."
        ),
    ] = 300
    pivot: Annotated[
        str,
        Meta(
            description="Self: the Cluster API objects are moved into the cluster, and workers start after that. "
            "Never: they stay here, and workers start when the control plane is initialized."
        ),
    ] = Pivot.SELF.value
    autoscaling: Annotated[
        str,
        Meta(
            description="None: pools have a fixed number of replicas. ClusterAutoscaler: the cluster-autoscaler scales "
            "pools that set min and max."
        ),
    ] = Autoscaling.NONE.value
    parent_config: Annotated[Any, Meta(description="A field of Lattice; stored and ignored.")] = None
    environment: Annotated[str, Meta(description="A field of Lattice; stored and ignored.")] = ""
    region: Annotated[str, Meta(description="A field of Lattice; stored and ignored.")] = ""
    workload: Annotated[Any, Meta(description="A field of Lattice; stored and ignored.")] = None


# status


class BlockingPod(PlainStruct, frozen=True):
    pod: Annotated[str, Meta(description="The pod's namespace and name.")] = ""
    node: Annotated[str, Meta(description="The node on which the pod runs.")] = ""
    message: Annotated[str, Meta(description="The API server's message about the rejected eviction.")] = ""


class WorkerPoolStatus(NullableStruct, frozen=True, omit_defaults=True):
    display_name: Annotated[str, Meta(description="The pool's displayName.")] = ""
    desired: Annotated[int, Meta(description="The desired number of replicas.")] = 0
    ready: Annotated[int, Meta(description="Replicas whose machine is ready.")] = 0
    available: Annotated[int, Meta(description="Replicas that have been ready for minReadySeconds.")] = 0
    node_class: Annotated[str, Meta(description="The LatticeNodeClass of the current template.")] = ""
    replicas: Annotated[int, Meta(description="The current number of replicas.")] = 0
    up_to_date: Annotated[int, Meta(description="Replicas created from the current template.")] = 0
    phase: Annotated[
        str, Meta(description="Pending, Scaling, Rolling, Ready, Draining, Deleting, Blocked or Paused.")
    ] = ""
    message: Annotated[str, Meta(description="Current activity of the pool, or the reason why it waits.")] = ""
    machine_deployment: Annotated[str, Meta(description="The MachineDeployment of the pool.")] = ""
    version: Annotated[str, Meta(description="The desired Kubernetes version of its machines.")] = ""
    blocking_pods: Annotated[Slice[BlockingPod], Meta(description="The first 50 pods that block the drain.")] = ()


class LatticeClusterStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status reflects.")] = 0
    phase: Annotated[str, Meta(description="Pending, Provisioning, Pivoting, Ready, Failed or Deleting.")] = ""
    message: Annotated[str, Meta(description="Current activity of the cluster, or the reason why it waits.")] = ""
    version: Annotated[str, Meta(description="The Kubernetes version of the control plane.")] = ""
    ready_control_plane: Annotated[int, Meta(description="The number of ready control plane machines.")] = 0
    ready_workers: Annotated[int, Meta(description="The number of ready workers.")] = 0
    workers: Annotated[int, Meta(description="The desired number of workers.")] = 0
    pivoted: Annotated[bool, Meta(description="True if the cluster contains its own Cluster API objects.")] = False
    worker_pools: Annotated[dict[str, WorkerPoolStatus], Meta(description="The status of each pool, by id.")] = {}
    conditions: Annotated[
        Slice[Condition], Meta(description="Ready, Accepted, Provisioned, PoolsDrained and VersionCurrent.")
    ] = ()


class LatticeCluster(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[LatticeClusterSpec, Meta(description="The desired state.")] = LatticeClusterSpec()
    status: Annotated[LatticeClusterStatus, Meta(description="The observed state.")] = LatticeClusterStatus()

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
        """The version with a leading v, as Cluster API writes it."""
        return f"v{self.spec.provider.kubernetes.version.removeprefix('v')}"

    @property
    def policy(self) -> DeletionPolicy:
        """The deletion policy; an unknown value is read as Drain, which deletes nothing that is in use."""
        policy = self.spec.pool_deletion_policy
        return DeletionPolicy(policy) if policy in list(DeletionPolicy) else DeletionPolicy.DRAIN

    @property
    def is_autoscaled(self) -> bool:
        return self.spec.autoscaling == Autoscaling.CLUSTER_AUTOSCALER

    def is_pool_autoscaled(self, pool: WorkerPool) -> bool:
        """Return True if the cluster-autoscaler owns this pool's replicas: it needs both min and max."""
        return self.is_autoscaled and pool.min is not None and pool.max is not None


def resolved_pools(nodes: NodesSpec) -> dict[str, WorkerPool]:
    """Return the pools sorted by id; `workers` is the pool `default`."""
    if nodes.worker_pools is not None:
        return dict(sorted(nodes.worker_pools.items()))
    return {} if nodes.workers is None else {names.DEFAULT_POOL: WorkerPool(replicas=nodes.workers)}


def total_workers(nodes: NodesSpec) -> int:
    return sum(pool.replicas for pool in resolved_pools(nodes).values())


# classes


class Mount(PlainStruct, frozen=True):
    container_path: Annotated[str, Meta(description="The mount path in the machine.")] = ""
    host_path: Annotated[str, Meta(description="The path on the host.")] = ""
    read_only: Annotated[bool, Meta(description="True mounts it read-only.")] = False


class DockerClass(NullableStruct, frozen=True):
    image: Annotated[str, Meta(description="The node image.")] = ""
    extra_mounts: Annotated[Slice[Mount], Meta(description="Additional mounts.")] = ()
    memory: Annotated[str | int, Meta(description="Ignored: CAPD has no such setting.")] = ""
    cpus: Annotated[str | int, Meta(description="Ignored: CAPD has no such setting.")] = ""


class AwsClass(PlainStruct, frozen=True):
    instance_type: Annotated[str, Meta(description="The instance type; defaults to t3.medium.")] = ""
    ami: Annotated[str, Meta(description="The AMI; defaults to the AMI of the cluster.")] = ""
    root_volume_size: Annotated[int | None, Meta(description="The root volume size in GiB; defaults to 100.")] = None


class ProxmoxClass(NullableStruct, frozen=True):
    cores: Annotated[int | None, Meta(description="CPU cores.")] = None
    sockets: Annotated[int | None, Meta(description="CPU sockets.")] = None
    memory: Annotated[
        str, Meta(description="Memory as a quantity such as 16Gi; rounded up to a multiple of 8 MiB.")
    ] = ""
    template: Annotated[str, Meta(description="The tag of the VM template to clone.")] = ""
    template_id: Annotated[int | None, Meta(description="The id of the VM template to clone.")] = msgspec.field(
        default=None, name="templateId"
    )
    disk_size_gb: Annotated[int | None, Meta(description="The disk size in GB.")] = None


class ClassProviders(PlainStruct, frozen=True):
    aws: Annotated[AwsClass | None, Meta(description="Machine settings on AWS.")] = None
    docker: Annotated[DockerClass | None, Meta(description="Machine settings on Docker.")] = None
    proxmox: Annotated[ProxmoxClass | None, Meta(description="Machine settings on Proxmox.")] = None


class LatticeNodeClassSpec(PlainStruct, frozen=True):
    providers: Annotated[ClassProviders, Meta(description="Machine settings by provider.")] = ClassProviders()
    resources: Annotated[
        Any,
        Meta(
            description="cores, memoryGi and storageGi of a node; the cluster-autoscaler uses them to scale from zero."
        ),
    ] = None
    cost_per_hour: Annotated[Any, Meta(description="The cost per hour by provider; informational.")] = None


class LatticeNodeClassStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status reflects.")] = 0
    pools: Annotated[Slice[str], Meta(description="The first 50 pools that use the class, as cluster/pool.")] = ()
    conditions: Annotated[Slice[Condition], Meta(description="Ready.")] = ()


class LatticeNodeClass(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[LatticeNodeClassSpec, Meta(description="The machine settings.")] = LatticeNodeClassSpec()
    status: Annotated[LatticeNodeClassStatus, Meta(description="The pools that use the class.")] = (
        LatticeNodeClassStatus()
    )


# services


class ServiceToleration(PlainStruct, frozen=True):
    key: Annotated[str, Meta(description="The taint key; empty with operator Exists matches every key.")] = ""
    operator: Annotated[str, Meta(description="Equal or Exists; defaults to Equal.")] = ""
    value: Annotated[str, Meta(description="The taint value; only with operator Equal.")] = ""
    effect: Annotated[str, Meta(description="The taint effect; empty matches every effect.")] = ""


class Placement(NullableStruct, frozen=True):
    node_selector: Annotated[StringMap, Meta(description="Labels that the nodes of a matching pool have.")] = {}
    tolerations: Annotated[Slice[ServiceToleration], Meta(description="Tolerations for taints of pools.")] = ()


class LatticeServiceSpec(PlainStruct, frozen=True):
    placement: Annotated[Placement, Meta(description="Requirements on the worker pool.")] = Placement()


class PlacedPool(PlainStruct, frozen=True):
    cluster: Annotated[str, Meta(description="The LatticeCluster.")] = ""
    worker_pool: Annotated[str, Meta(description="The pool's id.")] = ""
    node_class: Annotated[str, Meta(description="The pool's LatticeNodeClass.")] = ""
    replicas: Annotated[int, Meta(description="The desired number of nodes of the pool.")] = 0


class RefusedPool(PlainStruct, frozen=True):
    cluster: Annotated[str, Meta(description="The LatticeCluster.")] = ""
    worker_pool: Annotated[str, Meta(description="The pool's id.")] = ""
    reason: Annotated[str, Meta(description="The reason why the pool does not match, in CamelCase.")] = ""
    message: Annotated[str, Meta(description="The label, taint or state because of which the pool does not match.")] = (
        ""
    )


class LatticeServiceStatus(NullableStruct, frozen=True, omit_defaults=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status reflects.")] = 0
    phase: Annotated[str, Meta(description="Placed or Unplaced.")] = ""
    message: Annotated[str, Meta(description="The number of matching pools, or the reason why none matches.")] = ""
    placements: Annotated[Slice[PlacedPool], Meta(description="The first 50 matching pools.")] = ()
    refused: Annotated[Slice[RefusedPool], Meta(description="The first 50 pools that do not match.")] = ()
    conditions: Annotated[Slice[Condition], Meta(description="Placed.")] = ()


class LatticeService(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[LatticeServiceSpec, Meta(description="The desired state.")] = LatticeServiceSpec()
    status: Annotated[LatticeServiceStatus, Meta(description="The matching pools.")] = LatticeServiceStatus()
