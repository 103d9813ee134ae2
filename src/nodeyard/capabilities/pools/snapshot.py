"""Immutable snapshots: of one LatticeCluster, of all LatticeNodeClasses and of all LatticeServices.

Cluster API objects are kept whole: the planner computes the effect of an apply from their fields and managedFields.
Machines, nodes and pods are numerous and are decoded only partially. Pods are included only for nodes of pools that are
being removed, from the workload cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.pool_index import Match, PoolIndex, PoolOffer
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, LatticeService
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition, Namespace, Node, NullableStruct, ObjectMeta, PlainStruct, Pod, Slice

# objects of Cluster API


class NodeReference(PlainStruct, frozen=True):
    name: str = ""


class MachineDeletion(PlainStruct, frozen=True):
    node_drain_timeout_seconds: int | None = None


class MachineSpec(PlainStruct, frozen=True):
    cluster_name: str = ""
    version: str = ""
    deletion: MachineDeletion = MachineDeletion()


class MachineStatus(NullableStruct, frozen=True):
    node_ref: NodeReference | None = None
    phase: str = ""
    conditions: Slice[Condition] = ()


class Machine(PlainStruct, frozen=True):
    """A Machine of Cluster API with the fields that the planner reads."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()

    @property
    def node(self) -> str:
        """The name of its Node; empty before status.nodeRef is set."""
        return self.status.node_ref.name if self.status.node_ref else ""

    @property
    def deployment(self) -> str:
        return self.metadata.labels.get(names.DEPLOYMENT_NAME_LABEL, "")


class Reference(PlainStruct, frozen=True):
    kind: str = ""
    name: str = ""


class Bootstrap(PlainStruct, frozen=True):
    config_ref: Reference = Reference()


class MachineTemplateSpec(PlainStruct, frozen=True):
    bootstrap: Bootstrap = Bootstrap()
    infrastructure_ref: Reference = Reference()


class MachineTemplate(PlainStruct, frozen=True):
    spec: MachineTemplateSpec = MachineTemplateSpec()


class MachineSetSpec(PlainStruct, frozen=True):
    template: MachineTemplate = MachineTemplate()


class MachineSet(PlainStruct, frozen=True):
    """A MachineSet of Cluster API with its template references."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MachineSetSpec = MachineSetSpec()


@dataclass(frozen=True)
class TemplateMeta:
    """An existing template: its content never changes, so its metadata is enough."""

    api_version: str
    kind: str
    metadata: ObjectMeta


# one cluster


@dataclass(frozen=True)
class Served:
    """Served versions of Cluster API and provider kinds, preferred version first."""

    versions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, kind: str) -> Sequence[str]:
        return self.versions.get(kind, ())


@dataclass(frozen=True)
class Management:
    """Objects in the namespace of a cluster, including objects that Nodeyard does not manage."""

    namespace: Namespace | None = None
    cluster: Object | None = None
    other_clusters: Sequence[str] = ()
    """Names of other Clusters in the namespace."""
    infrastructure: Object | None = None
    control_plane: Object | None = None
    deployments: Mapping[str, Object] = field(default_factory=dict)
    """Every MachineDeployment, by name."""
    machine_sets: Sequence[MachineSet] = ()
    machines: Sequence[Machine] = ()
    """Sorted by name."""
    templates: Sequence[TemplateMeta] = ()
    """KubeadmConfigTemplates and the providers' machine templates, sorted by kind and name."""

    def machines_of(self, deployment: str) -> list[Machine]:
        return list(self._by_deployment.get(deployment, ()))

    @cached_property
    def _by_deployment(self) -> Mapping[str, Sequence[Machine]]:
        """Index Machines by MachineDeployment: each pool reads it several times."""
        found: dict[str, list[Machine]] = {}
        for machine in self.machines:
            found.setdefault(machine.deployment, []).append(machine)
        return found

    def machine_set(self, name: str) -> MachineSet | None:
        return self._sets.get(name)

    @cached_property
    def _sets(self) -> Mapping[str, MachineSet]:
        return {each.metadata.name: each for each in self.machine_sets}

    def template(self, kind: str, name: str) -> TemplateMeta | None:
        return self._by_name.get((kind, name))

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], TemplateMeta]:
        return {(each.kind, each.metadata.name): each for each in reversed(self.templates)}


@dataclass(frozen=True)
class Workload:
    """The workload cluster: the local cluster after a pivot, otherwise the cluster of the kubeconfig."""

    uid: str = ""
    """The uid of its kube-system Namespace; empty until known."""
    is_own: bool = False
    """True if Nodeyard runs on it."""
    is_pending: bool = False
    """True while the uids of both clusters are read for the first time.

    After a restart the stored status knows more than this snapshot, so it is not overwritten.
    """
    error: str = ""
    """The connection error; empty if it is connected."""
    cluster: str = ""
    """The value of `ObjectRef.cluster` for its objects; empty for the local cluster."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Known Nodes of Machines, by name."""
    pods: Mapping[str, Sequence[Pod]] | None = field(default_factory=dict)
    """Pods by node, for pools that are being removed; None until the informers are synced."""
    daemon_sets: frozenset[tuple[str, str]] = frozenset()
    """Existing DaemonSets by namespace and name; collected only while a pool is being drained."""


@dataclass(frozen=True)
class ClassEdit:
    """Nodes that an edit of a LatticeNodeClass replaces, over all clusters."""

    nodes: int
    """The number of nodes from an earlier spec of the class."""
    managed: int
    """The number of nodes of all pools."""


@dataclass(frozen=True)
class PoolsSnapshot:
    cluster: LatticeCluster
    classes: Mapping[str, LatticeNodeClass] = field(default_factory=dict)
    """Existing classes that its pools use."""
    malformed_classes: Mapping[str, str] = field(default_factory=dict)
    """Classes that do not decode, with the error."""
    class_edits: Mapping[str, ClassEdit] = field(default_factory=dict)
    """Pending class edits by pool: its MachineDeployment was created from an earlier spec of the class."""
    served: Served = Served()
    management: Management = Management()
    workload: Workload = Workload()


# all classes


@dataclass(frozen=True)
class ClassUse:
    """A pool that uses a class."""

    cluster: str
    pool: str
    provider: str
    """The provider of its cluster."""
    nodes: int = 0
    """The replicas of its MachineDeployment."""
    made_from: str = ""
    """The hash of the class spec from which the machines were created; empty if it is not recorded."""
    inputs: str = ""
    """The hash of the current class spec."""

    @property
    def is_behind(self) -> bool:
        return bool(self.made_from and self.is_outdated)

    @property
    def is_outdated(self) -> bool:
        """True if the machines were created from another spec of the class, or from an unknown one."""
        return bool(self.nodes and self.made_from != self.inputs)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.pool}"


@dataclass(frozen=True)
class ClassesSnapshot:
    classes: Sequence[LatticeNodeClass] = ()
    """Sorted by name."""
    uses: Mapping[str, Sequence[ClassUse]] = field(default_factory=dict)
    """Uses by class, sorted by cluster and pool."""
    malformed: Mapping[str, str] = field(default_factory=dict)
    """Classes that do not decode, with the error."""


# all services


@dataclass(frozen=True)
class ServicesSnapshot:
    services: Sequence[LatticeService] = ()
    """Sorted by namespace and name."""
    offers: Sequence[PoolOffer] = ()
    """Sorted by cluster and pool."""
    malformed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Services that do not decode, by namespace and name, with the error."""

    @cached_property
    def pool_index(self) -> PoolIndex:
        return PoolIndex(self.offers)

    def match(self, service: LatticeService) -> Match:
        return self.pool_index.match(service.spec.placement)
