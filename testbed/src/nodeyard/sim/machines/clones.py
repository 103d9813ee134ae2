"""Objects cloned from a template: the KubeadmConfig and infrastructure machine of a Machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.sim.machines import names

_TEMPLATE: Final = "Template"


def clone_reference(reference: Object, name: str) -> Object:
    """Return the reference to a clone of the referenced template."""
    return {**reference, "kind": reference["kind"].removesuffix(_TEMPLATE), "name": name}


def clone(template: Object, name: str, labels: Mapping[str, str], owner: Object) -> Object:
    """Create an object from a template."""
    source = template["spec"].get("template") or {}
    metadata = source.get("metadata") or {}
    group = template["apiVersion"].partition("/")[0]
    origin = {
        names.CLONED_FROM_NAME: template["metadata"]["name"],
        names.CLONED_FROM_KIND: f"{template['kind']}.{group}",
    }
    obj = {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"].removesuffix(_TEMPLATE),
        "metadata": {
            "name": name,
            "namespace": template["metadata"]["namespace"],
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": {**(metadata.get("annotations") or {}), **origin},
            "ownerReferences": [owner],
        },
    }
    return {**obj, "spec": source["spec"]} if source.get("spec") else obj
