"""Simulated controller of MachineSets: builds new machines and updates existing ones in place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from nodeyard.kube.json import Json, Object
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.clones import clone_reference
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import annotations_of, is_deleting, labels_of, owner

FROM_SET: Final = "sim.nodeyard.dev/from-set"
"""Annotation of a machine: the keys of the labels and annotations that it got from its MachineSet."""
_IN_PLACE: Final = ("deletion", "minReadySeconds", "readinessGates", "taints")


class MachineSets:
    def __init__(self, objects: ObjectClient) -> None:
        self._objects = objects

    async def reconcile(self, entity: Entity) -> None:
        """Reconcile everything except the number of machines, which `machines.yaml` scales."""
        obj = entity.object
        if is_deleting(obj):
            machines = entity.index.referrers("machines-of-set", entity)
            for machine in machines:
                await self._objects.delete(machine.object)
            await self._objects.set_finalizer(obj, names.SET_FINALIZER, is_present=bool(machines))
            return
        generation = obj["metadata"]["generation"]
        if (obj.get("status") or {}).get("observedGeneration") != generation:
            for machine in entity.index.referrers("machines-of-set", entity):
                await self._objects.patch(machine.object, update_patch(machine.object, obj))
        status = {
            "observedGeneration": generation,
            "replicas": entity.count("machines-of-set"),
            "readyReplicas": entity.count("ready-machines-of-set"),
            "availableReplicas": entity.count("available-machines-of-set"),
        }
        await self._objects.update_status(obj, status)


def new_machine(set: Object, suffix: str) -> Json:
    """Return a new machine of this set; its KubeadmConfig and infrastructure machine get its name."""
    template = set["spec"]["template"]
    name = f"{set['metadata']['name'][:57]}-{suffix}"
    spec = template["spec"]
    bootstrap = spec.get("bootstrap") or {}
    if "configRef" in bootstrap:
        bootstrap = {**bootstrap, "configRef": clone_reference(bootstrap["configRef"], name)}
    metadata = _set_metadata(set)
    return {
        "apiVersion": names.VERSION,
        "kind": names.MACHINE.kind,
        "metadata": {
            "name": name,
            "namespace": set["metadata"]["namespace"],
            "labels": metadata["labels"],
            "annotations": {**metadata["annotations"], FROM_SET: _keys(metadata)},
            "ownerReferences": [owner(set)],
            "finalizers": [names.MACHINE_FINALIZER],
        },
        "spec": {
            **spec,
            "bootstrap": bootstrap,
            "infrastructureRef": clone_reference(spec["infrastructureRef"], name),
        },
    }


def update_patch(machine: Object, set: Object) -> Object:
    """Return the merge patch of what can change in place; keys of other owners are kept."""
    metadata, spec = _set_metadata(set), set["spec"]["template"]["spec"]
    before = json.loads(annotations_of(machine).get(FROM_SET, "{}"))
    annotations = {**_replaced(before, metadata, "annotations"), FROM_SET: _keys(metadata)}
    return {
        "metadata": {"labels": _replaced(before, metadata, "labels"), "annotations": annotations},
        "spec": {key: spec.get(key) for key in _IN_PLACE},
    }


def _set_metadata(set: Object) -> dict[str, dict[str, str]]:
    template_metadata = set["spec"]["template"].get("metadata") or {}
    inherited = {key: value for key, value in labels_of(set).items() if key == names.DEPLOYMENT_NAME}
    labels = {**(template_metadata.get("labels") or {}), **inherited, names.SET_NAME: set["metadata"]["name"]}
    return {
        "labels": {**labels, names.CLUSTER_NAME: set["spec"]["clusterName"]},
        "annotations": dict(template_metadata.get("annotations") or {}),
    }


def _replaced(before: Mapping[str, list[str]], metadata: Mapping[str, Mapping[str, str]], part: str) -> Object:
    return {**dict.fromkeys(before.get(part, ()), None), **metadata[part]}


def _keys(metadata: Mapping[str, Mapping[str, str]]) -> str:
    return json.dumps({part: sorted(metadata[part]) for part in ("labels", "annotations")})
