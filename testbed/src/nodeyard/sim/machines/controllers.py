"""All of it together: what stage files can `call` and `$call` of Cluster API, and what a test can hold up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from nodeyard.client.api import Client
from nodeyard.kube.json import Json, Object
from nodeyard.process.clock import Clock
from nodeyard.sim.executor import Procedure
from nodeyard.sim.machines import names
from nodeyard.sim.machines.clusters import Clusters
from nodeyard.sim.machines.controlplanes import ControlPlanes, Kubeconfig
from nodeyard.sim.machines.deletion import DRAIN_RETRY_SECONDS, Deletion
from nodeyard.sim.machines.deployments import Deployments
from nodeyard.sim.machines.joining import Identity, Joining
from nodeyard.sim.machines.lifecycle import Machines
from nodeyard.sim.machines.sets import Sets, new_machine
from nodeyard.sim.machines.workbench import Workbench
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.templates import Function

_PORT: Final = 6443


@dataclass(frozen=True)
class SimEnvironment:
    """What the played Cluster API cannot know by itself."""

    kubeconfig: Kubeconfig | None = None
    """How the workload cluster is reached: this very server in a cluster that manages itself. None: no such Secret."""
    as_kubelet: Identity | None = None
    """Who registers a node; by default the world itself."""
    drain_retry: float = DRAIN_RETRY_SECONDS
    """Seconds between two attempts to drain a node."""


class Controllers:
    def __init__(self, client: Client, clock: Clock, around: SimEnvironment) -> None:
        bench = Workbench(client, clock)
        clusters = Clusters(bench)
        self._around = around
        self._joining = Joining(bench, around.as_kubelet)
        self.procedures: Mapping[str, Procedure] = {
            "cluster": clusters.reconcile,
            "pause": clusters.pause,
            "control-plane": ControlPlanes(bench, around.kubeconfig).reconcile,
            "machine-deployment": Deployments(bench).reconcile,
            "machine-set": Sets(bench).reconcile,
            "machine": Machines(bench).reconcile,
            "machine-deletion": Deletion(bench, around.drain_retry).proceed,
            "machine-start": self._joining.start,
        }
        self.functions: Mapping[str, Function] = {"machine": new_machine, "endpoint": self._endpoint}

    def hold_joins(self, deployment: str) -> None:
        """Machines of this MachineDeployment that have not joined do not, until released."""
        self._joining.held.add(deployment)

    def release_joins(self, deployment: str) -> None:
        self._joining.held.discard(deployment)

    def _endpoint(self) -> Json:
        """Where the API server of a new cluster is."""
        if self._around.kubeconfig is None:
            return {"host": "127.0.0.1", "port": _PORT}
        url = urlsplit(self._around.kubeconfig()["clusters"][0]["cluster"]["server"])
        return {"host": url.hostname, "port": url.port or _PORT}


def node_of(kind: Kind, obj: Object) -> str | None:
    """The node that runs on an infrastructure machine; it falls silent with it."""
    if not kind.api_version.startswith("infrastructure."):
        return None
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((one["name"] for one in owners if one["kind"] == names.MACHINE.kind), None)
