"""Simulated infrastructure provider: provisions a machine, whose kubelet then registers a node."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.errors import AdmissionDenied, AlreadyExists, Forbidden
from nodeyard.client.resources import NODES
from nodeyard.kube.json import Object
from nodeyard.sim.executor import Requeue
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.kubelets import Registration, RegistrationError, registration
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import is_cluster_paused, is_control_plane, is_deleting, labels_of
from nodeyard.sim.nodes import KUBELET, node

RETRY_SECONDS: Final = 0.5

Identity = Callable[[str], AbstractAsyncContextManager[Client]]
"""Returns a client that acts as the kubelet of a node."""


class InfrastructureMachines:
    def __init__(self, objects: ObjectClient, as_kubelet: Identity | None = None) -> None:
        self._objects = objects
        self._as_kubelet: Identity = as_kubelet or (lambda name: nullcontext(objects.client))
        self.held: set[str] = set()
        """MachineDeployments whose machines do not join."""

    async def reconcile(self, infrastructure: Entity) -> None:
        """Provision the machine once it has bootstrap data, then register its node."""
        obj = infrastructure.object
        machine = await self._machine(obj)
        if machine is None or not (machine["spec"].get("bootstrap") or {}).get("dataSecretName"):
            return
        cluster = await self._objects.get(names.CLUSTER, machine["spec"]["clusterName"], obj["metadata"]["namespace"])
        if cluster is None or is_cluster_paused(cluster):
            raise Requeue(RETRY_SECONDS, "paused", has_backoff=False)
        await self._provision(obj)
        if (machine.get("status") or {}).get("nodeRef") or is_deleting(machine):
            return  # it has joined; deleting its Node does not restart it
        if labels_of(machine).get(names.DEPLOYMENT_NAME) in self.held:
            raise Requeue(RETRY_SECONDS, "held", has_backoff=False)
        await self._join(obj, machine)

    async def _machine(self, obj: Object) -> Object | None:
        owners = obj["metadata"].get("ownerReferences") or ()
        name = next((one["name"] for one in owners if one["kind"] == names.MACHINE.kind), None)
        return None if name is None else await self._objects.get(names.MACHINE, name, obj["metadata"]["namespace"])

    async def _provision(self, obj: Object) -> None:
        await self._objects.patch(obj, {"spec": {"providerID": provider_id(obj)}})
        done = {"ready": True} if obj["kind"] == "AWSMachine" else {"initialization": {"provisioned": True}}
        await self._objects.patch(obj, {"status": done}, "status")

    async def _join(self, obj: Object, machine: Object) -> None:
        reference = machine["spec"]["bootstrap"].get("configRef")
        config = await self._objects.resolve(reference, obj["metadata"]["namespace"]) if reference else {}
        if config is None:
            raise Requeue(RETRY_SECONDS, "no KubeadmConfig", has_backoff=False)
        try:
            options = registration(config.get("spec") or {}, is_control_plane=is_control_plane(machine))
            await self._register(self._node(obj, machine, options))
        except RegistrationError as reason:
            await self._objects.record_warning(obj, "NotJoining", str(reason))

    def _node(self, obj: Object, machine: Object, options: Registration) -> Object:
        name = machine["metadata"]["name"]
        version = machine["spec"].get("version")
        registered = node(
            name,
            self._objects.clock.now(),
            zone=machine["spec"].get("failureDomain", "zone-a"),
            labels=options.labels,
            taints=options.taints,
            provider_id=provider_id(obj),
            is_ready=True,
        )
        if version is None:
            return registered
        info = {**registered["status"]["nodeInfo"], "kubeletVersion": version}
        annotations = {**registered["metadata"]["annotations"], KUBELET: version}
        return {
            **registered,
            "metadata": {**registered["metadata"], "annotations": annotations},
            "status": {**registered["status"], "nodeInfo": info},
        }

    async def _register(self, obj: Object) -> None:
        name = obj["metadata"]["name"]
        async with self._as_kubelet(name) as client:
            try:
                await client.create(NODES, obj)
            except AlreadyExists:
                return
            except (Forbidden, AdmissionDenied) as refusal:
                raise RegistrationError(str(refusal)) from refusal


def provider_id(infrastructure: Object) -> str:
    metadata = infrastructure["metadata"]
    return f"{infrastructure['kind'].lower()}:///{metadata['namespace']}/{metadata['name']}"
