"""ValidatingAdmissionPolicy that protects the labels and annotations of spares on nodes.

nyallocator's policy covers only updates of `nodes`: the label can still be changed through `nodes/status`, and a
kubelet can register with it. This policy covers updates of both by everyone, and registration by kubelets.
Administrators and machine controllers may still create nodes with the owner's label. NodeTemplates need no policy:
their CRD rejects reserved keys.
"""

from __future__ import annotations

from nodeyard.capabilities.spares import names
from nodeyard.kube.json import Object

GUARD = "nodeyard-spares-guard-nodes"
_API = "admissionregistration.k8s.io/v1"
_GUARDED_LABELS = (names.TEMPLATE_LABEL, names.OUT_LABEL, names.RECORD_DIGEST)
_GUARDED_ANNOTATIONS = (names.RECORD, names.LABELLED, names.RELEASE)


def policies(service_account: str) -> list[Object]:
    """Return policy and binding. `service_account` is the operator's, as `system:serviceaccount:NAMESPACE:NAME`."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
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
                {"name": "not-the-operator", "expression": f"request.userInfo.username != '{service_account}'"},
                {
                    "name": "update-or-kubelet",
                    "expression": "request.operation == 'UPDATE' || 'system:nodes' in request.userInfo.groups",
                },
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
    """Return the validation that a key does not change; on CREATE it must be absent."""

    def value(obj: str) -> str:
        return f"{obj}.metadata.?{where}['{key}']"

    return {
        "expression": f"{value('object')} == (request.operation == 'CREATE' ? optional.none() : {value('oldObject')})",
        "message": f"the {what} {key} belongs to Nodeyard: change the NodeTemplate instead",
        "reason": "Forbidden",
    }
