"""Defaults of webhook configurations and policies."""

from __future__ import annotations

from nodeyard.apiserver.kinds.defaults.filling import filling
from nodeyard.kube.json import Object

_ADMISSION = "io.k8s.api.admissionregistration.v1."

_MATCH: Object = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_WEBHOOK: Object = {**_MATCH, "failurePolicy": "Fail", "timeoutSeconds": 10}

DEFAULTS = {
    _ADMISSION + "MatchResources": filling(_MATCH),
    _ADMISSION + "MutatingWebhook": filling({**_WEBHOOK, "reinvocationPolicy": "Never"}),
    _ADMISSION + "NamedRuleWithOperations": filling({"scope": "*"}),
    _ADMISSION + "RuleWithOperations": filling({"scope": "*"}),
    _ADMISSION + "ServiceReference": filling({"port": 443}),
    _ADMISSION + "ValidatingAdmissionPolicySpec": filling({"failurePolicy": "Fail"}),
    _ADMISSION + "ValidatingWebhook": filling(_WEBHOOK),
}
