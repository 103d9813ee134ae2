"""Defaults of pods and of the types in a pod spec, which apply in templates as well."""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.kinds.edits import fill, filler, map_items, replace
from nodeyard.kube.json import Object

_CORE = "io.k8s.api.core.v1."
_POD_SPEC: Object = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
}
_PROBE: Object = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_FILE_MODE = 0o644
_MODE: Object = {"defaultMode": _FILE_MODE}


def pull_policy(image: str) -> str:
    """Return Always for tag `latest` or none; an image with a digest and no tag does not change."""
    if not image:
        return "IfNotPresent"
    last = image.rpartition("/")[2]
    reference, _, digest = last.partition("@")
    tag = reference.partition(":")[2]
    if not tag and not digest:
        tag = "latest"
    return "Always" if tag == "latest" else "IfNotPresent"


def container(obj: Object) -> Object:
    return fill(
        obj,
        {
            "imagePullPolicy": obj.get("imagePullPolicy") or pull_policy(obj.get("image", "")),
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        },
    )


def pod(obj: Object) -> Object:
    """Set the defaults that pods get and templates do not."""
    spec = fill(obj.get("spec") or {}, {"enableServiceLinks": True})
    is_on_host_network = bool(spec.get("hostNetwork"))
    for field in ("containers", "initContainers"):
        if spec.get(field):
            changed = map_items(spec[field], lambda each: _in_pod(each, is_on_host_network))
            spec = replace(spec, **{field: changed})
    if (spec.get("resources") or {}).get("limits"):
        spec = replace(spec, resources=_pod_requests(spec))
    return replace(obj, spec=spec)


def _in_pod(each: Object, is_on_host_network: bool) -> Object:
    resources = each.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests") or {}
    if limits and any(name not in requests for name in limits):
        each = {**each, "resources": {**resources, "requests": {**limits, **requests}}}
    if is_on_host_network and each.get("ports"):
        each = replace(each, ports=map_items(each["ports"], _on_host))
    return each


def _on_host(port: Object) -> Object:
    return fill(port, {"hostPort": port.get("containerPort", 0)})


def _pod_requests(spec: Object) -> Object:
    """Default pod-level requests to pod-level limits, except for resources that a container requests."""
    resources: Object = spec["resources"]
    requests: dict[str, Any] = dict(resources.get("requests") or {})
    asked = {
        name for each in spec.get("containers") or () for name in (each.get("resources") or {}).get("requests") or ()
    }
    for name, amount in resources["limits"].items():
        if name not in requests and name not in asked:
            requests[name] = amount
    return {**resources, "requests": requests} if requests != (resources.get("requests") or {}) else resources


def pod_spec(obj: Object) -> Object:
    spec = fill(obj, _POD_SPEC)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec = {**spec, "terminationGracePeriodSeconds": 1}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if not account or spec.get("serviceAccount") == spec.get("serviceAccountName"):
        return spec
    return {**spec, "serviceAccountName": account, "serviceAccount": account}


def pod_status(obj: Object) -> Object:
    """Keep podIP and the first of podIPs the same."""
    address, addresses = obj.get("podIP"), obj.get("podIPs") or []
    if address and (not addresses or addresses[0].get("ip") != address):
        return {**obj, "podIPs": [{"ip": address}]}
    if addresses and not address:
        return {**obj, "podIP": addresses[0].get("ip", "")}
    return obj


def volume(obj: Object) -> Object:
    """Make a volume without source an emptyDir."""
    return obj if any(field != "name" for field in obj) else {**obj, "emptyDir": {}}


def image_volume(obj: Object) -> Object:
    return fill(obj, {"pullPolicy": pull_policy(obj.get("reference", ""))})


DEFAULTS = {
    _CORE + "ConfigMapVolumeSource": filler(_MODE),
    _CORE + "Container": container,
    _CORE + "ContainerPort": filler({"protocol": "TCP"}),
    _CORE + "DownwardAPIVolumeSource": filler(_MODE),
    _CORE + "EphemeralContainer": container,
    _CORE + "GRPCAction": filler({"service": ""}),
    _CORE + "HTTPGetAction": filler({"path": "/", "scheme": "HTTP"}),
    _CORE + "HostPathVolumeSource": filler({"type": ""}),
    _CORE + "ImageVolumeSource": image_volume,
    _CORE + "ObjectFieldSelector": filler({"apiVersion": "v1"}),
    _CORE + "PersistentVolumeClaim": filler({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}),
    _CORE + "PersistentVolumeClaimStatus": filler({"phase": "Pending"}),
    _CORE + "PersistentVolumeClaimSpec": filler({"volumeMode": "Filesystem"}),
    _CORE + "Pod": pod,
    _CORE + "PodSpec": pod_spec,
    _CORE + "PodStatus": pod_status,
    _CORE + "Probe": filler(_PROBE),
    _CORE + "ProjectedVolumeSource": filler(_MODE),
    _CORE + "SecretVolumeSource": filler(_MODE),
    _CORE + "ServiceAccountTokenProjection": filler({"expirationSeconds": 3600}),
    _CORE + "Volume": volume,
}
