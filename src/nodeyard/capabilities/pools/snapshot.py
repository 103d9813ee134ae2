"""What may influence the decision about one LatticeCluster, frozen.

Cluster API's objects are kept whole, as the server has them: what an apply would change is read off their fields and
managed fields. Machines, nodes and pods, of which there are many, are trimmed to what is decided by. Pods are known
only of nodes that are being drained, and of the workload cluster, wherever that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition, Namespace, Node, NullableStruct, ObjectMeta, PlainStruct, Pod, Slice


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
    """A Machine of Cluster API, as far as it is decided by."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()

    @property
    def node(self) -> str:
        """The node it has become; empty before that."""
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
    """A MachineSet of Cluster API: which templates its machines are of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MachineSetSpec = MachineSetSpec()


@dataclass(frozen=True)
class TemplateMeta:
    """A template that there is: its contents never change, so its metadata is enough."""

    api_version: str
    kind: str
    metadata: ObjectMeta


@dataclass(frozen=True)
class Served:
    """The versions that the server has of the kinds of the infrastructure providers, preferred first."""

    versions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, kind: str) -> Sequence[str]:
        return self.versions.get(kind, ())


@dataclass(frozen=True)
class Management:
    """What there is of a cluster in its namespace, ours and others'."""

    namespace: Namespace | None = None
    cluster: Object | None = None
    other_clusters: Sequence[str] = ()
    """Clusters of other names that somebody has put there."""
    infrastructure: Object | None = None
    control_plane: Object | None = None
    deployments: Mapping[str, Object] = field(default_factory=dict)
    """Every MachineDeployment, by name."""
    machine_sets: Sequence[MachineSet] = ()
    machines: Sequence[Machine] = ()
    """By name."""
    templates: Sequence[TemplateMeta] = ()
    """KubeadmConfigTemplates and the providers' machine templates, by kind and name."""

    def machines_of(self, deployment: str) -> list[Machine]:
        return list(self._by_deployment.get(deployment, ()))

    @cached_property
    def _by_deployment(self) -> Mapping[str, Sequence[Machine]]:
        """Each pool asks several times: looked through once."""
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
    """The cluster whose nodes the pools are: ours after a pivot, else the one its kubeconfig leads to."""

    uid: str = ""
    """Of its kube-system Namespace; empty while it is not known."""
    is_own: bool = False
    """It is the cluster we run on."""
    has_kubeconfig: bool = False
    is_pending: bool = False
    """Who it is, and who we are, is being asked for the first time: whoever asked before a restart knew better."""
    error: str = ""
    """Why it cannot be reached."""
    cluster: str = ""
    """How actions on its objects name it; empty where it is our own."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """The nodes that Machines have become, as far as known."""
    pods: Mapping[str, Sequence[Pod]] | None = field(default_factory=dict)
    """By node, of pools that are being removed; None while they are not known."""
    daemon_sets: frozenset[tuple[str, str]] = frozenset()
    """Those that exist, by namespace and name; known while a pool is being drained."""


@dataclass(frozen=True)
class PoolsSnapshot:
    cluster: LatticeCluster
    classes: Mapping[str, LatticeNodeClass] = field(default_factory=dict)
    """Those that its pools name and that exist."""
    bad_classes: Mapping[str, str] = field(default_factory=dict)
    """Those that did not decode, with the error."""
    served: Served = Served()
    management: Management = Management()
    workload: Workload = Workload()
