"""Defaults of webhook configurations and policies."""

from __future__ import annotations

from nodeyard.apiserver.kinds.edits import filler
from nodeyard.kube.json import Object

_ADMISSION = "io.k8s.api.admissionregistration.v1."

_MATCH: Object = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_WEBHOOK: Object = {**_MATCH, "failurePolicy": "Fail", "timeoutSeconds": 10}

DEFAULTS = {
    _ADMISSION + "MatchResources": filler(_MATCH),
    _ADMISSION + "MutatingWebhook": filler({**_WEBHOOK, "reinvocationPolicy": "Never"}),
    _ADMISSION + "NamedRuleWithOperations": filler({"scope": "*"}),
    _ADMISSION + "RuleWithOperations": filler({"scope": "*"}),
    _ADMISSION + "ServiceReference": filler({"port": 443}),
    _ADMISSION + "ValidatingAdmissionPolicySpec": filler({"failurePolicy": "Fail"}),
    _ADMISSION + "ValidatingWebhook": filler(_WEBHOOK),
}
