"""The generated part of `charts/`: what the operator's chart grants, and the definitions in the chart beside it.

One file for each capability, so that a chart takes those of the capabilities that are chosen and says nothing of its
own about rights. Unlike in `config/`, where each capability has an account, one account runs all that are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import dump, dump_all
from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Capability

FOLDER: Final = "charts"
ACCOUNT: Final = "nodeyard"

_OPERATOR: Final = "nodeyard/files"
_DEFINITIONS: Final = "nodeyard-crds/files"
_KEPT: Final = {"helm.sh/resource-policy": "keep"}
"""Helm leaves it when the chart is uninstalled: with a definition go all objects of its kind."""


def files(capabilities: Sequence[Capability] = CAPABILITIES) -> Iterator[tuple[str, str]]:
    """Path below charts/, and content."""
    for capability in capabilities:
        name = capability.name
        yield f"{_OPERATOR}/roles/{name}.yaml", dump_all(rbac.roles(capability, ACCOUNT))
        if registering := rbac.registering_roles(capability, ACCOUNT):
            yield f"{_OPERATOR}/webhooks/{name}.yaml", dump_all(registering)
        if people := rbac.viewer_and_editor(capability):
            yield f"{_OPERATOR}/people/{name}.yaml", dump_all(people)
        if guards := list(capability.policies(rbac.username(ACCOUNT))):
            yield f"{_OPERATOR}/policies/{name}.yaml", dump_all(guards)
        for definition in capability.definitions():
            yield f"{_DEFINITIONS}/{name}/{definition['metadata']['name']}.yaml", dump(_kept(definition))


def _kept(definition: Object) -> Object:
    metadata = definition["metadata"]
    return {**definition, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **_KEPT}}}
