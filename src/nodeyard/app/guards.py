"""Generates the ValidatingAdmissionPolicy that confines the operator's own ServiceAccounts where RBAC cannot.

RBAC does not look into objects. An account that may create Secrets in a namespace could create one of type
`kubernetes.io/service-account-token`, and the server would fill in the token of any account of that namespace. The
policy keeps a stolen token from doing so. Policies of a single capability are generated with its roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.runtime import rbac

SECRETS: Final = "nodeyard-accounts-secrets"
_API: Final = "admissionregistration.k8s.io/v1"
_WRITES: Final = ("CREATE", "UPDATE")


def account_policies() -> list[Object]:
    """Return the policy and its binding. They apply only to ServiceAccounts of the operator's namespace."""
    return _policy(SECRETS, _rule("", "v1", "secrets", _WRITES), _secrets())


def _secrets() -> Object:
    certificates = (
        f"object.type == 'kubernetes.io/tls' && object.metadata.namespace == '{NAMESPACE}' && "
        f"object.metadata.name == '{WEBHOOK_CERTIFICATES}'"
    )
    return {
        "expression": f"object.type == 'Opaque' || ({certificates})",
        "messageExpression": "'ServiceAccounts of Nodeyard may write only Secrets of type Opaque, not of type ' + "
        "object.type",
        "reason": "Forbidden",
    }


def _rule(group: str, version: str, resource: str, operations: Sequence[str]) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resource],
    }


def _policy(name: str, rule: Object, validation: Object) -> list[Object]:
    ours = rbac.username("")
    policy: Object = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [
                {"name": "an-account-of-ours", "expression": f"request.userInfo.username.startsWith('{ours}')"}
            ],
            "validations": [validation],
        },
    }
    binding: Object = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return [policy, binding]
