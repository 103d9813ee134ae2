"""Defaults of services."""

from __future__ import annotations

from nodeyard.apiserver.kinds.edits import fill, map_items, replace
from nodeyard.kube.json import Object

_STICKY_SECONDS = 10800


def service(obj: Object) -> Object:
    spec = fill(obj["spec"], {"sessionAffinity": "None", "type": "ClusterIP"})
    spec = _session_affinity(spec)
    if spec.get("ports"):
        spec = replace(spec, ports=map_items(spec["ports"], _service_port))
    is_external = spec["type"] in ("NodePort", "LoadBalancer")
    if is_external or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec = fill(spec, {"externalTrafficPolicy": "Cluster"})
    if spec["type"] != "ExternalName":
        spec = fill(spec, {"internalTrafficPolicy": "Cluster"})
    if spec["type"] == "LoadBalancer":
        spec = fill(spec, {"allocateLoadBalancerNodePorts": True})
    return replace(obj, spec=spec)


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


DEFAULTS = {"io.k8s.api.core.v1.Service": service}
