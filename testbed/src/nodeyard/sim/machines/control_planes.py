"""Simulated control plane provider: creates and replaces the machines of a KubeadmControlPlane, one at a time."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.sim.executor import Requeue
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.clones import clone, clone_reference
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import NewCondition, has_condition, is_deleting, labels_of, owner

RETRY_SECONDS: Final = 0.5

Kubeconfig = Callable[[], Object]
"""Returns the kubeconfig of the workload cluster."""


@dataclass(frozen=True)
class Step:
    """The next change: at most one machine is created or deleted."""

    create: str | None = None
    delete: str | None = None


def next_step(control_plane: Object, machines: Sequence[Object], *, is_held: bool = False) -> Step:
    """Return the next step: create before delete, and only when all machines are ready."""
    wanted = machine_names(control_plane)
    live = [one for one in machines if not is_deleting(one)]
    present = {one["metadata"]["name"] for one in live}
    outdated = sorted(present - set(wanted))
    if len(live) < len(machines) or not all(has_condition(one, names.READY) for one in live):
        return Step()
    missing = [name for name in wanted if name not in present]
    if is_held and outdated:
        return Step()
    if missing and len(live) <= len(wanted):
        return Step(create=missing[0])
    if outdated and (not missing or len(live) > len(wanted)):
        return Step(delete=outdated[0])
    return Step()


def machine_names(control_plane: Object) -> list[str]:
    """Return a name per replica; the names change when the machines must be replaced."""
    metadata, spec = control_plane["metadata"], control_plane["spec"]
    inputs = [metadata["uid"], spec["version"], spec["machineTemplate"]["spec"]["infrastructureRef"]]
    digest = sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
    return [f"{metadata['name'][:50]}-{digest[:5]}-{number}" for number in range(spec.get("replicas", 1))]


class ControlPlanes:
    def __init__(self, objects: ObjectClient, kubeconfig: Kubeconfig | None) -> None:
        self._objects = objects
        self._kubeconfig = kubeconfig

    async def reconcile(self, entity: Entity) -> None:
        obj = entity.object
        machines = [one.object for one in entity.index.referrers("machines-of-control-plane", entity)]
        if is_deleting(obj):
            for machine in machines:
                await self._objects.delete(machine)
            await self._objects.set_finalizer(obj, names.CONTROL_PLANE_FINALIZER, is_present=bool(machines))
            return
        await self._objects.set_finalizer(obj, names.CONTROL_PLANE_FINALIZER, is_present=True)
        await self._ensure_kubeconfig(obj)
        if not _is_infrastructure_ready(entity):
            return
        step = next_step(obj, machines, is_held=entity.is_marked(names.HELD))
        if step.create is not None:
            await self._create(obj, step.create)
        for machine in machines:
            if machine["metadata"]["name"] == step.delete:
                await self._objects.delete(machine)
        await self._update_status(obj, machines)

    async def _ensure_kubeconfig(self, obj: Object) -> None:
        """Create the kubeconfig Secret of the cluster."""
        if self._kubeconfig is None:
            return
        cluster = labels_of(obj)[names.CLUSTER_NAME]
        value = base64.b64encode(json.dumps(self._kubeconfig()).encode()).decode()
        name, namespace = f"{cluster}-kubeconfig", obj["metadata"]["namespace"]
        if await self._objects.get(names.SECRET, name, namespace) is None:
            metadata = {
                "name": name,
                "namespace": namespace,
                "labels": {names.CLUSTER_NAME: cluster},
                "ownerReferences": [owner(obj)],
            }
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": names.SECRET_TYPE}
            await self._objects.create({**secret, "data": {"value": value}})

    async def _create(self, obj: Object, name: str) -> None:
        """Create the KubeadmConfig and infrastructure machine first, so that the Machine's references resolve."""
        cluster, namespace = labels_of(obj)[names.CLUSTER_NAME], obj["metadata"]["namespace"]
        reference = obj["spec"]["machineTemplate"]["spec"]["infrastructureRef"]
        template = await self._objects.resolve(reference, namespace)
        if template is None:
            raise Requeue(RETRY_SECONDS, f"no {reference['kind']} {reference['name']}", has_backoff=False)
        template_metadata = obj["spec"]["machineTemplate"].get("metadata") or {}
        labels = {
            **(template_metadata.get("labels") or {}),
            names.CLUSTER_NAME: cluster,
            names.CONTROL_PLANE_LABEL: "",
            names.CONTROL_PLANE_NAME: obj["metadata"]["name"],
        }
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        config = {
            "apiVersion": names.CONFIG.api_version,
            "kind": names.CONFIG.kind,
            "metadata": {**metadata, "ownerReferences": [owner(obj, controls=False)]},
        }
        config_spec = obj["spec"].get("kubeadmConfigSpec")
        await self._objects.create({**config, "spec": config_spec} if config_spec else config)
        await self._objects.create(clone(template, name, labels, owner(obj, controls=False)))
        spec = {
            "clusterName": cluster,
            "version": obj["spec"]["version"],
            "bootstrap": {"configRef": {"apiGroup": names.BOOTSTRAP, "kind": names.CONFIG.kind, "name": name}},
            "infrastructureRef": clone_reference(reference, name),
        }
        if deletion := obj["spec"]["machineTemplate"]["spec"].get("deletion"):
            spec["deletion"] = deletion
        machine = {"apiVersion": names.VERSION, "kind": names.MACHINE.kind, "spec": spec}
        own = {"annotations": template_metadata.get("annotations") or {}, "ownerReferences": [owner(obj)]}
        await self._objects.create({**machine, "metadata": {**metadata, **own}})

    async def _update_status(self, obj: Object, machines: Sequence[Object]) -> None:
        was_initialized = _is_initialized(obj)
        is_initialized = was_initialized or await self._has_node(machines)
        await self._objects.update_status(obj, *status(obj, machines, is_initialized=is_initialized))
        if machines and not is_initialized:
            raise Requeue(RETRY_SECONDS, "not initialized", has_backoff=False)

    async def _has_node(self, machines: Sequence[Object]) -> bool:
        for machine in machines:
            if await self._objects.get(names.NODE, machine["metadata"]["name"]) is not None:
                return True
        return False


def status(obj: Object, machines: Sequence[Object], *, is_initialized: bool) -> tuple[Object, list[NewCondition]]:
    """Return the counters and conditions of a control plane with these machines."""
    wanted, spec = set(machine_names(obj)), obj["spec"]
    replicas = spec.get("replicas", 1)
    up_to_date = sum(one["metadata"]["name"] in wanted for one in machines)
    versions = sorted((one["spec"]["version"] for one in machines), key=_version_key)
    fields = {
        "observedGeneration": obj["metadata"]["generation"],
        "selector": f"{names.CLUSTER_NAME}={labels_of(obj)[names.CLUSTER_NAME]},{names.CONTROL_PLANE_LABEL}",
        "replicas": len(machines),
        "readyReplicas": sum(has_condition(one, names.READY) for one in machines),
        "availableReplicas": sum(has_condition(one, names.AVAILABLE) for one in machines),
        "upToDateReplicas": up_to_date,
    }
    if versions:
        fields["version"] = versions[0]
    if is_initialized:
        fields["initialization"] = {"controlPlaneInitialized": True}
    is_rolling = up_to_date < len(machines)
    is_available = is_initialized and fields["availableReplicas"] >= min(replicas, 1)
    updates = [
        NewCondition("Initialized", is_initialized, "Initialized" if is_initialized else "NotInitialized"),
        NewCondition(names.AVAILABLE, is_available, "Available" if is_available else "NotAvailable"),
        NewCondition("RollingOut", is_rolling, "RollingOut" if is_rolling else "NotRollingOut"),
    ]
    return fields, updates


def _is_infrastructure_ready(entity: Entity) -> bool:
    cluster = entity.related("cluster-of-control-plane")
    done = ((cluster.object if cluster else {}).get("status") or {}).get("initialization") or {}
    return bool(done.get("infrastructureProvisioned"))


def _is_initialized(obj: Object) -> bool:
    done = (obj.get("status") or {}).get("initialization") or {}
    return bool(done.get("controlPlaneInitialized"))


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("v").split("-")[0].split("+")[0].split("."))
