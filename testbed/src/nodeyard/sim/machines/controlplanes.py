"""The control plane provider's part: a KubeadmControlPlane gets its machines, one at a time, and replaces them so."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.sim.executor import NotYet
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.clones import clone, clone_reference
from nodeyard.sim.machines.facts import Seen, is_deleting, is_true, labels_of, owner
from nodeyard.sim.machines.workbench import Workbench

LOOK_AGAIN_SECONDS: Final = 0.5

Kubeconfig = Callable[[], Object]
"""How the workload cluster is reached."""


@dataclass(frozen=True)
class Step:
    """What comes next: at most one machine at a time is made or goes."""

    create: str | None = None
    delete: str | None = None


def next_step(control_plane: Object, machines: Sequence[Object], *, is_held: bool = False) -> Step:
    """A new machine joins before an old one leaves, and each waits for the last to be ready."""
    wanted = machine_names(control_plane)
    live = [one for one in machines if not is_deleting(one)]
    present = {one["metadata"]["name"] for one in live}
    outdated = sorted(present - set(wanted))
    if len(live) < len(machines) or not all(is_true(one, names.READY) for one in live):
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
    """One for each replica; others as soon as machines have to be others."""
    metadata, spec = control_plane["metadata"], control_plane["spec"]
    made_of = [metadata["uid"], spec["version"], spec["machineTemplate"]["spec"]["infrastructureRef"]]
    digest = sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
    return [f"{metadata['name'][:50]}-{digest[:5]}-{number}" for number in range(spec.get("replicas", 1))]


class ControlPlanes:
    def __init__(self, bench: Workbench, kubeconfig: Kubeconfig | None) -> None:
        self._bench = bench
        self._kubeconfig = kubeconfig

    async def reconcile(self, entity: Entity) -> None:
        obj = entity.object
        machines = [one.object for one in entity.index.pointing("machines-of-control-plane", entity)]
        if is_deleting(obj):
            for machine in machines:
                await self._bench.delete(machine)
            await self._bench.finalize(obj, names.CONTROL_PLANE_FINALIZER, is_held=bool(machines))
            return
        await self._bench.finalize(obj, names.CONTROL_PLANE_FINALIZER, is_held=True)
        await self._publish(obj)
        if not _has_place(entity):
            return
        step = next_step(obj, machines, is_held=entity.is_marked(names.HELD))
        if step.create is not None:
            await self._create(obj, step.create)
        for machine in machines:
            if machine["metadata"]["name"] == step.delete:
                await self._bench.delete(machine)
        await self._report(obj, machines)

    async def _publish(self, obj: Object) -> None:
        """The Secret that leads to the cluster."""
        if self._kubeconfig is None:
            return
        cluster = labels_of(obj)[names.CLUSTER_NAME]
        value = base64.b64encode(json.dumps(self._kubeconfig()).encode()).decode()
        name, namespace = f"{cluster}-kubeconfig", obj["metadata"]["namespace"]
        if await self._bench.get(names.SECRET, name, namespace) is None:
            metadata = {
                "name": name,
                "namespace": namespace,
                "labels": {names.CLUSTER_NAME: cluster},
                "ownerReferences": [owner(obj)],
            }
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": names.SECRET_TYPE}
            await self._bench.create({**secret, "data": {"value": value}})

    async def _create(self, obj: Object, name: str) -> None:
        """The machine's parts first, so that it never refers to what is not there."""
        cluster, namespace = labels_of(obj)[names.CLUSTER_NAME], obj["metadata"]["namespace"]
        reference = obj["spec"]["machineTemplate"]["spec"]["infrastructureRef"]
        template = await self._bench.follow(reference, namespace)
        if template is None:
            raise NotYet(LOOK_AGAIN_SECONDS, f"no {reference['kind']} {reference['name']}", grows=False)
        about = obj["spec"]["machineTemplate"].get("metadata") or {}
        marked = {
            **(about.get("labels") or {}),
            names.CLUSTER_NAME: cluster,
            names.CONTROL_PLANE_LABEL: "",
            names.CONTROL_PLANE_NAME: obj["metadata"]["name"],
        }
        metadata = {"name": name, "namespace": namespace, "labels": marked}
        config = {
            "apiVersion": names.CONFIG.api_version,
            "kind": names.CONFIG.kind,
            "metadata": {**metadata, "ownerReferences": [owner(obj, controls=False)]},
        }
        told = obj["spec"].get("kubeadmConfigSpec")
        await self._bench.create({**config, "spec": told} if told else config)
        await self._bench.create(clone(template, name, marked, owner(obj, controls=False)))
        spec = {
            "clusterName": cluster,
            "version": obj["spec"]["version"],
            "bootstrap": {"configRef": {"apiGroup": names.BOOTSTRAP, "kind": names.CONFIG.kind, "name": name}},
            "infrastructureRef": clone_reference(reference, name),
        }
        if deletion := obj["spec"]["machineTemplate"]["spec"].get("deletion"):
            spec["deletion"] = deletion
        machine = {"apiVersion": names.VERSION, "kind": names.MACHINE.kind, "spec": spec}
        own = {"annotations": about.get("annotations") or {}, "ownerReferences": [owner(obj)]}
        await self._bench.create({**machine, "metadata": {**metadata, **own}})

    async def _report(self, obj: Object, machines: Sequence[Object]) -> None:
        was_initialized = _is_initialized(obj)
        is_initialized = was_initialized or await self._has_node(machines)
        await self._bench.report(obj, *status(obj, machines, is_initialized=is_initialized))
        if machines and not is_initialized:
            raise NotYet(LOOK_AGAIN_SECONDS, "not initialized", grows=False)

    async def _has_node(self, machines: Sequence[Object]) -> bool:
        for machine in machines:
            if await self._bench.get(names.NODE, machine["metadata"]["name"]) is not None:
                return True
        return False


def status(obj: Object, machines: Sequence[Object], *, is_initialized: bool) -> tuple[Object, list[Seen]]:
    """The counters and conditions of a control plane with these machines."""
    wanted, spec = set(machine_names(obj)), obj["spec"]
    replicas = spec.get("replicas", 1)
    up_to_date = sum(one["metadata"]["name"] in wanted for one in machines)
    versions = sorted((one["spec"]["version"] for one in machines), key=_by_number)
    told = {
        "observedGeneration": obj["metadata"]["generation"],
        "selector": f"{names.CLUSTER_NAME}={labels_of(obj)[names.CLUSTER_NAME]},{names.CONTROL_PLANE_LABEL}",
        "replicas": len(machines),
        "readyReplicas": sum(is_true(one, names.READY) for one in machines),
        "availableReplicas": sum(is_true(one, names.AVAILABLE) for one in machines),
        "upToDateReplicas": up_to_date,
    }
    if versions:
        told["version"] = versions[0]
    if is_initialized:
        told["initialization"] = {"controlPlaneInitialized": True}
    is_rolling = up_to_date < len(machines)
    is_available = is_initialized and told["availableReplicas"] >= min(replicas, 1)
    seen = [
        Seen("Initialized", is_initialized, "Initialized" if is_initialized else "NotInitialized"),
        Seen(names.AVAILABLE, is_available, "Available" if is_available else "NotAvailable"),
        Seen("RollingOut", is_rolling, "RollingOut" if is_rolling else "NotRollingOut"),
    ]
    return told, seen


def _has_place(entity: Entity) -> bool:
    cluster = entity.related("cluster-of-control-plane")
    done = ((cluster.object if cluster else {}).get("status") or {}).get("initialization") or {}
    return bool(done.get("infrastructureProvisioned"))


def _is_initialized(obj: Object) -> bool:
    done = (obj.get("status") or {}).get("initialization") or {}
    return bool(done.get("controlPlaneInitialized"))


def _by_number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("v").split("-")[0].split("+")[0].split("."))
