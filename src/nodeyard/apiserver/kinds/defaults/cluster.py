"""Defaults of everything that does not run: namespaces, services, configuration, roles, admission."""

from __future__ import annotations

import base64

from nodeyard.apiserver.kinds.defaults.pods import fill, filling
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE_NAME

_CORE = "io.k8s.api.core.v1."
_RBAC = "io.k8s.api.rbac.v1."
_ADMISSION = "io.k8s.api.admissionregistration.v1."
_RBAC_GROUP = "rbac.authorization.k8s.io"
_STICKY_SECONDS = 10800

_MATCH: Object = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_WEBHOOK: Object = {**_MATCH, "failurePolicy": "Fail", "timeoutSeconds": 10}


def namespace(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    name, labels = metadata.get("name"), metadata.get("labels") or {}
    if not name or labels.get(NAMESPACE_NAME) == name:
        return obj
    return {**obj, "metadata": {**metadata, "labels": {**labels, NAMESPACE_NAME: name}}}


def secret(obj: Object) -> Object:
    """Opaque unless it says otherwise. `stringData` is only for writing: it goes over into data."""
    obj = fill(obj, {"type": "Opaque"})
    if "stringData" not in obj:
        return obj
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in obj["stringData"].items()}
    kept = {field: value for field, value in obj.items() if field != "stringData"}
    return {**kept, "data": {**(obj.get("data") or {}), **encoded}}


def service(obj: Object) -> Object:
    spec = fill(obj["spec"], {"sessionAffinity": "None", "type": "ClusterIP"})
    spec = _session_affinity(spec)
    if spec.get("ports"):
        spec = {**spec, "ports": [_service_port(port) for port in spec["ports"]]}
    is_external = spec["type"] in ("NodePort", "LoadBalancer")
    if is_external or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec = fill(spec, {"externalTrafficPolicy": "Cluster"})
    if spec["type"] != "ExternalName":
        spec = fill(spec, {"internalTrafficPolicy": "Cluster"})
    if spec["type"] == "LoadBalancer":
        spec = fill(spec, {"allocateLoadBalancerNodePorts": True})
    return {**obj, "spec": spec}


def _session_affinity(spec: Object) -> Object:
    if spec["sessionAffinity"] == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if config.get("timeoutSeconds") is None:
            return {**spec, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": _STICKY_SECONDS}}}
    elif spec["sessionAffinity"] == "None" and "sessionAffinityConfig" in spec:
        return {field: value for field, value in spec.items() if field != "sessionAffinityConfig"}
    return spec


def _service_port(port: Object) -> Object:
    port = fill(port, {"protocol": "TCP"})
    return port if port.get("targetPort") else {**port, "targetPort": port.get("port", 0)}


def role_binding(obj: Object) -> Object:
    reference = obj.get("roleRef") or {}
    return obj if reference.get("apiGroup") else {**obj, "roleRef": {**reference, "apiGroup": _RBAC_GROUP}}


def subject(obj: Object) -> Object:
    return fill(obj, {"apiGroup": _RBAC_GROUP}) if obj.get("kind") in ("User", "Group") else obj


DEFAULTS = {
    _ADMISSION + "MatchResources": filling(_MATCH),
    _ADMISSION + "MutatingWebhook": filling({**_WEBHOOK, "reinvocationPolicy": "Never"}),
    _ADMISSION + "NamedRuleWithOperations": filling({"scope": "*"}),
    _ADMISSION + "RuleWithOperations": filling({"scope": "*"}),
    _ADMISSION + "ServiceReference": filling({"port": 443}),
    _ADMISSION + "ValidatingAdmissionPolicySpec": filling({"failurePolicy": "Fail"}),
    _ADMISSION + "ValidatingWebhook": filling(_WEBHOOK),
    _CORE + "Namespace": namespace,
    _CORE + "NamespaceStatus": filling({"phase": "Active"}),
    _CORE + "Secret": secret,
    _CORE + "Service": service,
    _RBAC + "ClusterRoleBinding": role_binding,
    _RBAC + "RoleBinding": role_binding,
    _RBAC + "Subject": subject,
}
