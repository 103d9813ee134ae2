"""Admission policies that guard what spares writes on nodes against everyone else.

nyallocator's own policy looks at updates of nodes alone: through `nodes/status` the label can still be changed. These
cover both. NodeTemplates need no policy: their CRD refuses reserved keys.
"""

from __future__ import annotations

from nodeyard.capabilities.spares import names
from nodeyard.kube.json import Object

GUARD = "nodeyard-spares-guard-nodes"
_API = "admissionregistration.k8s.io/v1"
_GUARDED_LABELS = (names.TEMPLATE_LABEL, names.OUT_LABEL)
_GUARDED_ANNOTATIONS = (names.RECORD, names.LABELLED, names.RELEASE)


def policies(service_account: str) -> list[Object]:
    """Policy and binding; `service_account` is the operator's, as `system:serviceaccount:NAMESPACE:NAME`."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["nodes", "nodes/status"],
    }
    policy: Object = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": GUARD},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [
                {"name": "not-the-operator", "expression": f"request.userInfo.username != '{service_account}'"}
            ],
            "validations": [
                *(_unchanged("labels", "label", key) for key in _GUARDED_LABELS),
                *(_unchanged("annotations", "annotation", key) for key in _GUARDED_ANNOTATIONS),
            ],
        },
    }
    binding: Object = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": GUARD},
        "spec": {"policyName": GUARD, "validationActions": ["Deny"]},
    }
    return [policy, binding]


def _unchanged(where: str, what: str, key: str) -> Object:
    """Absent before and after, or the same."""

    def value(obj: str) -> str:
        return f"{obj}.metadata.?{where}['{key}']"

    return {
        "expression": f"{value('object')} == {value('oldObject')}",
        "message": f"the {what} {key} belongs to Nodeyard: change the NodeTemplate instead",
        "reason": "Forbidden",
    }
