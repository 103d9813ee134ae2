"""The infrastructure provider's part: a machine is provisioned, starts, and its kubelet registers a node."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.errors import AdmissionDenied, AlreadyExists, Forbidden
from nodeyard.client.resources import NODES
from nodeyard.kube.json import Object
from nodeyard.sim.executor import NotYet
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.facts import annotations_of, is_control_plane, is_deleting, labels_of
from nodeyard.sim.machines.kubelets import NeverJoins, Registration, registration
from nodeyard.sim.machines.workbench import Workbench
from nodeyard.sim.nodes import KUBELET, node

LOOK_AGAIN_SECONDS: Final = 0.5

Identity = Callable[[str], AbstractAsyncContextManager[Client]]
"""A client that acts as the kubelet of the node of this name."""


class Joining:
    def __init__(self, bench: Workbench, as_kubelet: Identity | None = None) -> None:
        self._bench = bench
        self._as_kubelet: Identity = as_kubelet or (lambda name: nullcontext(bench.client))
        self.held: set[str] = set()
        """MachineDeployments whose machines do not join for now."""

    async def start(self, infrastructure: Entity) -> None:
        """Provision the machine once it has its start script, then let it join."""
        obj = infrastructure.object
        machine = await self._machine(obj)
        if machine is None or not (machine["spec"].get("bootstrap") or {}).get("dataSecretName"):
            return
        cluster = await self._bench.get(names.CLUSTER, machine["spec"]["clusterName"], obj["metadata"]["namespace"])
        if cluster is None or _is_paused(cluster):
            raise NotYet(LOOK_AGAIN_SECONDS, "paused", grows=False)
        await self._provision(obj)
        if (machine.get("status") or {}).get("nodeRef") or is_deleting(machine):
            return  # it has joined; who deletes its node object does not restart it
        if labels_of(machine).get(names.DEPLOYMENT_NAME) in self.held:
            raise NotYet(LOOK_AGAIN_SECONDS, "held", grows=False)
        await self._join(obj, machine)

    async def _machine(self, obj: Object) -> Object | None:
        owners = obj["metadata"].get("ownerReferences") or ()
        name = next((one["name"] for one in owners if one["kind"] == names.MACHINE.kind), None)
        return None if name is None else await self._bench.get(names.MACHINE, name, obj["metadata"]["namespace"])

    async def _provision(self, obj: Object) -> None:
        await self._bench.patch(obj, {"spec": {"providerID": provider_id(obj)}})
        done = {"ready": True} if obj["kind"] == "AWSMachine" else {"initialization": {"provisioned": True}}
        await self._bench.patch(obj, {"status": done}, "status")

    async def _join(self, obj: Object, machine: Object) -> None:
        reference = machine["spec"]["bootstrap"].get("configRef")
        config = await self._bench.follow(reference, obj["metadata"]["namespace"]) if reference else {}
        if config is None:
            raise NotYet(LOOK_AGAIN_SECONDS, "no KubeadmConfig", grows=False)
        try:
            said = registration(config.get("spec") or {}, is_control_plane=is_control_plane(machine))
            await self._register(self._node(obj, machine, said))
        except NeverJoins as reason:
            await self._bench.warn(obj, "NotJoining", str(reason))

    def _node(self, obj: Object, machine: Object, said: Registration) -> Object:
        name = machine["metadata"]["name"]
        version = machine["spec"].get("version")
        made = node(
            name,
            self._bench.clock.now(),
            zone=machine["spec"].get("failureDomain", "zone-a"),
            labels=said.labels,
            taints=said.taints,
            provider_id=provider_id(obj),
            is_ready=True,
        )
        if version is None:
            return made
        about = {**made["status"]["nodeInfo"], "kubeletVersion": version}
        metadata = {**made["metadata"], "annotations": {**made["metadata"]["annotations"], KUBELET: version}}
        return {**made, "metadata": metadata, "status": {**made["status"], "nodeInfo": about}}

    async def _register(self, made: Object) -> None:
        name = made["metadata"]["name"]
        async with self._as_kubelet(name) as client:
            try:
                await client.create(NODES, made)
            except AlreadyExists:
                return
            except (Forbidden, AdmissionDenied) as refusal:
                raise NeverJoins(str(refusal)) from refusal


def _is_paused(cluster: Object) -> bool:
    return bool(cluster["spec"].get("paused")) or names.PAUSED in annotations_of(cluster)


def provider_id(infrastructure: Object) -> str:
    metadata = infrastructure["metadata"]
    return f"{infrastructure['kind'].lower()}:///{metadata['namespace']}/{metadata['name']}"
