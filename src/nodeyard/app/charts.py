"""Generates the files of `charts/`: RBAC, policies and people's roles of the operator's chart, and the CRD chart.

Each capability has its own file, so that a chart includes only the chosen ones. One ServiceAccount runs all chosen
capabilities; in `config/` each capability has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.guards import account_policies
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import dump, dump_all
from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Capability

FOLDER: Final = "charts"
ACCOUNT: Final = "nodeyard"

_OPERATOR: Final = "nodeyard/files"
_DEFINITIONS: Final = "nodeyard-crds/files"
_KEPT: Final = {"helm.sh/resource-policy": "keep"}
"""Helm keeps a CRD when the chart is uninstalled: deleting a CRD deletes all objects of its kind."""


def files(capabilities: Sequence[Capability] = CAPABILITIES) -> Iterator[tuple[str, str]]:
    """Yield path below charts/ and content of every generated file."""
    for capability in capabilities:
        name = capability.name
        yield f"{_OPERATOR}/roles/{name}.yaml", dump_all(rbac.roles(capability, ACCOUNT))
        if webhook_roles := rbac.registering_roles(capability, ACCOUNT):
            yield f"{_OPERATOR}/webhooks/{name}.yaml", dump_all(webhook_roles)
        if people := rbac.people(capability):
            yield f"{_OPERATOR}/people/{name}.yaml", dump_all(people)
        if policies := list(capability.admission.policies(rbac.username(ACCOUNT))):
            yield f"{_OPERATOR}/policies/{name}.yaml", dump_all(policies)
        for definition in capability.definitions():
            yield f"{_DEFINITIONS}/{name}/{definition['metadata']['name']}.yaml", dump(_keep(definition))
    yield f"{_OPERATOR}/people/all.yaml", dump_all(rbac.command_roles())
    yield f"{_OPERATOR}/policies/accounts.yaml", dump_all(account_policies())


def _keep(definition: Object) -> Object:
    metadata = definition["metadata"]
    return {**definition, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **_KEPT}}}
