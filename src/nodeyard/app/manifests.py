"""Generates `config/` (CRDs, RBAC and policies), files of `charts/`, and the JSON Schemas in `docs/schema/`.

In `config/` each capability has its own ServiceAccount. In the charts one ServiceAccount runs all chosen capabilities,
and each capability has its own file, so that a chart includes only the chosen ones.

`make crds` runs `python -m nodeyard.app.manifests config`, which writes all of them. A test fails if they have drifted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from nodeyard.admission.client_config import HTTPS_PORT
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.dashboard.wire import Why
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import dump, dump_all
from nodeyard.kube.names import NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.plan.schema import DIALECT, plan_schema, with_kind
from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Capability

CHARTS: Final = "charts"
SCHEMAS: Final = "docs/schema"
ACCOUNT: Final = "nodeyard"
"""ServiceAccount of the chart."""
SECRETS_POLICY: Final = "nodeyard-accounts-secrets"
WEBHOOK_PORT: Final = 9443
"""The port of `--webhook-bind :9443` in a pod."""

_OPERATOR: Final = "nodeyard/files"
_DEFINITIONS: Final = "nodeyard-crds/files"
_POLICY_API: Final = "admissionregistration.k8s.io/v1"
_KEPT: Final = {"helm.sh/resource-policy": "keep"}
"""Helm keeps a CRD when the chart is uninstalled: deleting a CRD deletes all objects of its kind."""


def config_files(capabilities: Sequence[Capability] = CAPABILITIES) -> Iterator[tuple[str, str]]:
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


def account_policies() -> list[Object]:
    """Return the ValidatingAdmissionPolicy, and its binding, that confines our ServiceAccounts where RBAC cannot.

    RBAC does not look into objects. An account that may create Secrets in a namespace could create one of type
    `kubernetes.io/service-account-token`, and the server would fill in the token of any account of that namespace. The
    policy keeps a stolen token from doing so. Policies of a single capability are generated with its roles.
    """
    certificates = (
        f"object.type == 'kubernetes.io/tls' && object.metadata.namespace == '{NAMESPACE}' && "
        f"object.metadata.name == '{WEBHOOK_CERTIFICATES}'"
    )
    secrets: Object = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["secrets"],
    }
    only_opaque: Object = {
        "expression": f"object.type == 'Opaque' || ({certificates})",
        "messageExpression": "'ServiceAccounts of Nodeyard may write only Secrets of type Opaque, not of type ' + "
        "object.type",
        "reason": "Forbidden",
    }
    username = f"request.userInfo.username.startsWith('{rbac.username('')}')"
    policy: Object = {
        "apiVersion": _POLICY_API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": SECRETS_POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [secrets]},
            "matchConditions": [{"name": "an-account-of-ours", "expression": username}],
            "validations": [only_opaque],
        },
    }
    binding: Object = {
        "apiVersion": _POLICY_API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": SECRETS_POLICY},
        "spec": {"policyName": SECRETS_POLICY, "validationActions": ["Deny"]},
    }
    return [policy, binding]


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


def chart_files(capabilities: Sequence[Capability] = CAPABILITIES) -> Iterator[tuple[str, str]]:
    """Yield path below charts/ and content of every generated file: RBAC, policies and people's roles of the operator's
    chart, and the CRD chart."""
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


def schema_files() -> Iterator[tuple[str, str]]:
    """Yield path below docs/schema/ and content of every published JSON Schema."""
    for name, schema in (("plan", plan_schema()), ("why", why_schema())):
        yield f"{name}.schema.json", msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def why_schema() -> Object:
    """Return the schema of what `nodeyard why -o json` prints."""
    _, definitions = msgspec.json.schema_components([Why])
    why = with_kind(definitions["Why"], "Why")
    return {"$schema": DIALECT, **why, "$defs": {name: each for name, each in definitions.items() if name != "Why"}}


def _keep(definition: Object) -> Object:
    metadata = definition["metadata"]
    return {**definition, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **_KEPT}}}


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0])
    _write(folder, config_files())
    _write(folder.parent / CHARTS, chart_files())
    _write(folder.parent / SCHEMAS, schema_files())
    return 0


def _write(folder: Path, contents: Iterable[tuple[str, str]]) -> None:
    for path, content in contents:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        print(target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
