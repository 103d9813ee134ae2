"""MachineSets: what their machines are made from, and what of it reaches those that are there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from nodeyard.kube.json import Json, Object
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.clones import clone_reference
from nodeyard.sim.machines.facts import annotations_of, is_deleting, labels_of, owner
from nodeyard.sim.machines.workbench import Workbench

FROM_SET: Final = "sim.nodeyard.dev/from-set"
"""Annotation of a machine: the keys of its labels and annotations that its set gave it."""
_IN_PLACE: Final = ("deletion", "minReadySeconds", "readinessGates", "taints")


class Sets:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    async def reconcile(self, entity: Entity) -> None:
        """All but the number of machines, which is the stage file's."""
        obj = entity.object
        if is_deleting(obj):
            machines = entity.index.pointing("machines-of-set", entity)
            for machine in machines:
                await self._bench.delete(machine.object)
            await self._bench.finalize(obj, names.SET_FINALIZER, is_held=bool(machines))
            return
        generation = obj["metadata"]["generation"]
        if (obj.get("status") or {}).get("observedGeneration") != generation:
            for machine in entity.index.pointing("machines-of-set", entity):
                await self._bench.patch(machine.object, updated(machine.object, obj))
        told = {
            "observedGeneration": generation,
            "replicas": entity.count("machines-of-set"),
            "readyReplicas": entity.count("ready-machines-of-set"),
            "availableReplicas": entity.count("available-machines-of-set"),
        }
        await self._bench.report(obj, told)


def new_machine(set: Object, suffix: str) -> Json:
    """A machine of this set; what it refers to is made for it, under its name."""
    template = set["spec"]["template"]
    name = f"{set['metadata']['name'][:57]}-{suffix}"
    spec = template["spec"]
    bootstrap = spec.get("bootstrap") or {}
    if "configRef" in bootstrap:
        bootstrap = {**bootstrap, "configRef": clone_reference(bootstrap["configRef"], name)}
    told = _from_set(set)
    return {
        "apiVersion": names.VERSION,
        "kind": names.MACHINE.kind,
        "metadata": {
            "name": name,
            "namespace": set["metadata"]["namespace"],
            "labels": told["labels"],
            "annotations": {**told["annotations"], FROM_SET: _keys(told)},
            "ownerReferences": [owner(set)],
            "finalizers": [names.MACHINE_FINALIZER],
        },
        "spec": {
            **spec,
            "bootstrap": bootstrap,
            "infrastructureRef": clone_reference(spec["infrastructureRef"], name),
        },
    }


def updated(machine: Object, set: Object) -> Object:
    """The merge patch that brings a machine up to what can be changed in place; others' keys are left alone."""
    told, spec = _from_set(set), set["spec"]["template"]["spec"]
    before = json.loads(annotations_of(machine).get(FROM_SET, "{}"))
    given = {**_replaced(before, told, "annotations"), FROM_SET: _keys(told)}
    return {
        "metadata": {"labels": _replaced(before, told, "labels"), "annotations": given},
        "spec": {key: spec.get(key) for key in _IN_PLACE},
    }


def _from_set(set: Object) -> dict[str, dict[str, str]]:
    about = set["spec"]["template"].get("metadata") or {}
    inherited = {key: value for key, value in labels_of(set).items() if key == names.DEPLOYMENT_NAME}
    marked = {**(about.get("labels") or {}), **inherited, names.SET_NAME: set["metadata"]["name"]}
    return {
        "labels": {**marked, names.CLUSTER_NAME: set["spec"]["clusterName"]},
        "annotations": dict(about.get("annotations") or {}),
    }


def _replaced(before: Mapping[str, list[str]], told: Mapping[str, Mapping[str, str]], part: str) -> Object:
    return {**dict.fromkeys(before.get(part, ()), None), **told[part]}


def _keys(told: Mapping[str, Mapping[str, str]]) -> str:
    return json.dumps({part: sorted(told[part]) for part in ("labels", "annotations")})
