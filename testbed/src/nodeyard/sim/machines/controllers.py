"""The simulated Cluster API: its reconcilers, its template functions, and what a test can hold back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from nodeyard.client.api import Client
from nodeyard.kube.json import Json, Object
from nodeyard.process.clock import Clock
from nodeyard.sim.conditions import Condition, Subject
from nodeyard.sim.machines import names
from nodeyard.sim.machines.clusters import Clusters
from nodeyard.sim.machines.control_planes import ControlPlanes, Kubeconfig
from nodeyard.sim.machines.infrastructure import Identity, InfrastructureMachines
from nodeyard.sim.machines.machine_deletion import DRAIN_RETRY_SECONDS, MachineDeletion
from nodeyard.sim.machines.machine_deployments import MachineDeployments
from nodeyard.sim.machines.machine_sets import MachineSets, new_machine
from nodeyard.sim.machines.machines import Machines
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import is_cluster_paused, is_deleting, is_paused
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import Reconciler
from nodeyard.sim.templates import Function

_PORT: Final = 6443
_INFRASTRUCTURE: Final = {
    "dev": Kind("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachine"),
    "docker": Kind("infrastructure.cluster.x-k8s.io/v1beta2", "DockerMachine"),
    "aws": Kind("infrastructure.cluster.x-k8s.io/v1beta2", "AWSMachine"),
    "proxmox": Kind("infrastructure.cluster.x-k8s.io/v1alpha2", "ProxmoxMachine"),
}


@dataclass(frozen=True)
class SimEnvironment:
    """Settings that the simulated Cluster API cannot know by itself."""

    kubeconfig: Kubeconfig | None = None
    """Kubeconfig of the workload clusters; of this server for a cluster that manages itself. None: no Secret."""
    as_kubelet: Identity | None = None
    """The client that registers a node; by default that of the world."""
    drain_retry: float = DRAIN_RETRY_SECONDS
    """Seconds between two attempts to drain a node."""


class Controllers:
    def __init__(self, client: Client, clock: Clock, environment: SimEnvironment) -> None:
        objects = ObjectClient(client, clock)
        self._environment = environment
        self._infrastructure = InfrastructureMachines(objects, environment.as_kubelet)
        clusters = Clusters(objects)
        self.reconcilers: Mapping[str, Sequence[Reconciler]] = {
            "machines": [
                Reconciler(
                    "cluster",
                    names.CLUSTER,
                    clusters.reconcile,
                    lambda cluster: not is_cluster_paused(cluster.object),
                    follows=(
                        "control-plane-of-cluster",
                        "dev-of-cluster",
                        "docker-of-cluster",
                        "aws-of-cluster",
                        "proxmox-of-cluster",
                    ),
                ),
                Reconciler(
                    "cluster-paused",
                    names.CLUSTER,
                    clusters.set_paused,
                    lambda cluster: is_cluster_paused(cluster.object),
                    delay=(0, 0),
                    once=True,
                ),
                Reconciler(
                    "machine-deployment-paused",
                    names.DEPLOYMENT,
                    clusters.set_paused,
                    _is_deployment_paused,
                    reads=("cluster-of-deployment",),
                    delay=(0, 0),
                    once=True,
                ),
                Reconciler(
                    "machine-deployment",
                    names.DEPLOYMENT,
                    MachineDeployments(objects).reconcile,
                    _is_running("cluster-of-deployment"),
                    follows=("sets-of-deployment",),
                    reads=("cluster-of-deployment",),
                ),
                Reconciler(
                    "machine-set",
                    names.SET,
                    MachineSets(objects).reconcile,
                    _is_running("cluster-of-set"),
                    reads=("cluster-of-set",),
                ),
                Reconciler(
                    "machine",
                    names.MACHINE,
                    Machines(objects).reconcile,
                    _is_running("cluster-of-machine", deleting=False),
                    follows=(
                        "node-of-machine",
                        "machine-of-config",
                        *(f"machine-of-{each}" for each in _INFRASTRUCTURE),
                    ),
                    reads=("cluster-of-machine",),
                ),
                Reconciler(
                    "machine-deletion",
                    names.MACHINE,
                    MachineDeletion(objects, environment.drain_retry).reconcile,
                    _is_running("cluster-of-machine", deleting=True),
                    reads=("cluster-of-machine",),
                ),
            ],
            "providers": [
                Reconciler(
                    "control-plane",
                    names.CONTROL_PLANE,
                    ControlPlanes(objects, environment.kubeconfig).reconcile,
                    _is_running("cluster-of-control-plane"),
                    follows=("machines-of-control-plane", "cluster-of-control-plane"),
                    reads=("cluster-of-control-plane",),
                ),
                *(
                    Reconciler(
                        f"{name}-machine-start",
                        kind,
                        self._infrastructure.reconcile,
                        _can_start(f"machine-of-{name}"),
                        follows=(f"machine-of-{name}",),
                        reads=(f"machine-of-{name}",),
                        delay=(0.2, 0.8),
                    )
                    for name, kind in _INFRASTRUCTURE.items()
                ),
            ],
        }
        self.functions: Mapping[str, Function] = {"machine": new_machine, "endpoint": self._endpoint}

    def hold_joins(self, deployment: str) -> None:
        """Let no more machines of this MachineDeployment join, until `release_joins`."""
        self._infrastructure.held.add(deployment)

    def release_joins(self, deployment: str) -> None:
        self._infrastructure.held.discard(deployment)

    def _endpoint(self) -> Json:
        """Return the control plane endpoint of a new cluster."""
        if self._environment.kubeconfig is None:
            return {"host": "127.0.0.1", "port": _PORT}
        url = urlsplit(self._environment.kubeconfig()["clusters"][0]["cluster"]["server"])
        return {"host": url.hostname, "port": url.port or _PORT}


def _is_deployment_paused(deployment: Subject) -> bool:
    cluster = deployment.related("cluster-of-deployment")
    return is_paused(deployment.object) or (cluster is not None and is_cluster_paused(cluster.object))


def _is_running(cluster_relation: str, *, deleting: bool | None = None) -> Condition:
    """Match objects that are not paused in a cluster that is not; optionally only those being deleted or not."""

    def matches(subject: Subject) -> bool:
        if is_paused(subject.object) or deleting not in (None, is_deleting(subject.object)):
            return False
        cluster = subject.related(cluster_relation)
        return cluster is not None and not is_cluster_paused(cluster.object)

    return matches


def _can_start(machine_relation: str) -> Condition:
    """Match infrastructure machines whose Machine has bootstrap data and no Node yet."""

    def matches(subject: Subject) -> bool:
        if is_paused(subject.object) or is_deleting(subject.object):
            return False
        machine = subject.related(machine_relation)
        if machine is None:
            return False
        spec, status = machine.object["spec"], machine.object.get("status") or {}
        has_data = (spec.get("bootstrap") or {}).get("dataSecretName") is not None
        return has_data and (status.get("nodeRef") or {}).get("name") is None

    return matches


def node_of(kind: Kind, obj: Object) -> str | None:
    """Return the name of the node on an infrastructure machine, which fails when the machine is deleted."""
    if not kind.api_version.startswith("infrastructure."):
        return None
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((one["name"] for one in owners if one["kind"] == names.MACHINE.kind), None)
