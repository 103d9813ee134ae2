"""Objects made from a template: a machine's KubeadmConfig and its infrastructure machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.sim.machines import names

_TEMPLATE: Final = "Template"


def clone_reference(reference: Object, name: str) -> Object:
    """Where the clone of a referenced template is found."""
    return {**reference, "kind": reference["kind"].removesuffix(_TEMPLATE), "name": name}


def clone(template: Object, name: str, labels: Mapping[str, str], owner: Object) -> Object:
    """What a template says, as an object of its own."""
    source = template["spec"].get("template") or {}
    about = source.get("metadata") or {}
    group = template["apiVersion"].partition("/")[0]
    origin = {
        names.CLONED_FROM_NAME: template["metadata"]["name"],
        names.CLONED_FROM_KIND: f"{template['kind']}.{group}",
    }
    made = {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"].removesuffix(_TEMPLATE),
        "metadata": {
            "name": name,
            "namespace": template["metadata"]["namespace"],
            "labels": {**(about.get("labels") or {}), **labels},
            "annotations": {**(about.get("annotations") or {}), **origin},
            "ownerReferences": [owner],
        },
    }
    return {**made, "spec": source["spec"]} if source.get("spec") else made
