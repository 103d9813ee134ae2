"""Generates `config/` (CRDs, RBAC and policies) and the files of `charts/` from the capabilities' declarations.

`make crds` runs `python -m nodeyard.app.manifests config`, which writes both. A test fails if they have drifted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from nodeyard.admission.client_config import HTTPS_PORT
from nodeyard.app import charts
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.guards import account_policies
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import dump, dump_all
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Capability

WEBHOOK_PORT: Final = 9443
"""The port of `--webhook-bind :9443` in a pod."""


def files(capabilities: Sequence[Capability] = CAPABILITIES) -> Iterator[tuple[str, str]]:
    """Yield path below config/ and content of every generated file."""
    for capability in capabilities:
        for kind in capability.kinds:
            definition = kind.definition()
            yield f"crd/{definition['metadata']['name']}.yaml", dump(definition)
        yield f"rbac/{capability.name}.yaml", dump_all(rbac.manifests(capability))
        if people := rbac.people(capability):
            yield f"rbac/{capability.name}-people.yaml", dump_all(people)
        if capability.admission.webhooks:
            yield f"webhooks/{capability.name}.yaml", dump(_service(capability))
        if policies := list(capability.admission.policies(rbac.username(rbac.service_account(capability)))):
            yield f"policies/{capability.name}.yaml", dump_all(policies)
    yield "rbac/people.yaml", dump_all(rbac.command_roles())
    yield "policies/accounts.yaml", dump_all(account_policies())


def _service(capability: Capability) -> Object:
    """Build the Service for `--webhook-service nodeyard-system/nodeyard-<capability>`.

    Pods have a label for each capability that they run, so the Service works whether one Deployment runs all
    capabilities or each has its own.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": rbac.service_account(capability),
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/name": "nodeyard"},
        },
        "spec": {
            "selector": {"app.kubernetes.io/name": "nodeyard", f"nodeyard.dev/{capability.name}": "true"},
            "ports": [{"name": "webhooks", "port": HTTPS_PORT, "targetPort": WEBHOOK_PORT}],
        },
    }


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0])
    _write(folder, files())
    _write(folder.parent / charts.FOLDER, charts.files())
    return 0


def _write(folder: Path, contents: Iterable[tuple[str, str]]) -> None:
    for path, content in contents:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        print(target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
