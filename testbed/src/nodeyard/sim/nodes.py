"""Nodes as kubelets register them: about 11 KB each, mostly the list of images.

    node("n1", now, zone="a")

The size matters: it is nearly all that a fleet costs an API server and its clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Final
from uuid import UUID

from nodeyard.kube import names
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339

KUBELET = "sim.nodeyard.dev/kubelet"
"""Annotation of nodes whose kubelet is simulated; other nodes are ignored."""
SPARE_ROLE = "node-role.kubernetes.io/spare"
SPARE_TAINT = "node.cybozu.io/spare"
VERSION: Final = "v1.36.4"

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
_NOT_READY = (
    "Ready",
    "False",
    "KubeletNotReady",
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady",
)
_PROGRAMS = (
    "network-agent", "network-operator", "dns-server", "dns-cache", "service-proxy", "storage-node", "node-registrar",
    "volume-resizer", "snapshot-controller", "metrics-agent", "metrics-adapter", "log-forwarder", "log-collector",
    "trace-collector", "node-problem-detector", "certificate-agent", "secrets-provider", "policy-agent", "pause",
    "image-cleaner", "ingress-gateway", "mesh-sidecar", "mesh-init", "database", "database-exporter", "cache-server",
    "queue-server", "web-frontend", "web-backend", "batch-worker", "build-runner", "search-engine", "object-store",
    "event-router",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The size and type of a machine."""

    cpu: int = 16
    memory_gi: int = 64
    pods: int = 110
    storage_gi: int = 200
    arch: str = "amd64"
    instance_type: str = "sim.4xlarge"
    extended: Mapping[str, str] = field(default_factory=dict)
    """Extended resources, such as {"nvidia.com/gpu": "4"}."""


_STANDARD = NodeShape()


def node(
    name: str,
    now: datetime,
    *,
    zone: str = "zone-a",
    region: str = "region-1",
    shape: NodeShape = _STANDARD,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
    provider_id: str = "",
    is_ready: bool = False,
) -> Object:
    """Return a Node as its kubelet registers it."""
    digest = sha256(name.encode()).hexdigest()
    number = int(digest[:12], 16)
    spec: Object = {
        "podCIDR": f"10.{64 + number % 128}.{number // 128 % 256}.0/24",
        "podCIDRs": [f"10.{64 + number % 128}.{number // 128 % 256}.0/24"],
        "providerID": provider_id or f"sim://{region}/{zone}/{name}",
    }
    if taints:
        spec["taints"] = list(taints)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**_labels(name, zone, region, shape), **(labels or {})},
            "annotations": {**_annotations(number), **(annotations or {})},
        },
        "spec": spec,
        "status": _status(name, digest, shape, format_rfc3339(now), is_ready),
    }


def spare_node(
    name: str,
    now: datetime,
    *,
    zone: str = "zone-a",
    shape: NodeShape = _STANDARD,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """Return a spare node: labelled and tainted as such."""
    taint = {"key": SPARE_TAINT, "value": "true", "effect": "NoSchedule"}
    return node(name, now, zone=zone, shape=shape, labels={**(labels or {}), SPARE_ROLE: "true"}, taints=[taint])


def conditions(now: str, *, is_ready: bool) -> list[Object]:
    rows = (*_CONDITIONS, _READY if is_ready else _NOT_READY)
    return [
        {
            "type": kind,
            "status": status,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for kind, status, reason, message in rows
    ]


def renewed_conditions(old: Sequence[Object] | None, now: str, *, is_ready: bool) -> list[Object]:
    """Return the conditions of a kubelet's next report; lastTransitionTime changes with the status only."""
    since = {(one["type"], one["status"]): one.get("lastTransitionTime") for one in old or ()}
    return [
        {**new, "lastTransitionTime": since.get((new["type"], new["status"])) or now}
        for new in conditions(now, is_ready=is_ready)
    ]


def _labels(name: str, zone: str, region: str, shape: NodeShape) -> Object:
    return {
        "beta.kubernetes.io/arch": shape.arch,
        "beta.kubernetes.io/os": "linux",
        names.ARCH: shape.arch,
        names.OS: "linux",
        names.HOSTNAME: name,
        names.INSTANCE_TYPE: shape.instance_type,
        names.REGION: region,
        names.ZONE: zone,
    }


def _annotations(number: int) -> Object:
    return {
        KUBELET: VERSION,
        "csi.volume.kubernetes.io/nodeid": f'{{"sim.csi.nodeyard.dev":"i-{number:017x}"}}',
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }


def _status(name: str, digest: str, shape: NodeShape, now: str, is_ready: bool) -> Object:
    number = int(digest[:12], 16)
    address = f"10.{number % 64}.{number // 64 % 256}.{number // 16384 % 254 + 1}"
    return {
        "capacity": _resources(shape, reserved_cpu=0, reserved_mi=0),
        "allocatable": _resources(shape, reserved_cpu=240, reserved_mi=1024),
        "conditions": conditions(now, is_ready=is_ready),
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
            {"type": "InternalDNS", "address": f"{name}.fleet.internal"},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": digest[:32],
            "systemUUID": str(UUID(digest[:32])),
            "bootID": str(UUID(digest[32:])),
            "kernelVersion": "6.12.48-cloud-amd64",
            "osImage": "Debian GNU/Linux 13 (trixie)",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kubeletVersion": VERSION,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": shape.arch,
        },
        "images": _images(),
        "runtimeHandlers": [
            {"name": name, "features": {"recursiveReadOnlyMounts": True, "userNamespaces": True}}
            for name in ("", "runc", "sandboxed")
        ],
        "features": {"supplementalGroupsPolicy": True},
    }


def _resources(shape: NodeShape, *, reserved_cpu: int, reserved_mi: int) -> Object:
    return {
        "cpu": f"{shape.cpu * 1000 - reserved_cpu}m" if reserved_cpu else str(shape.cpu),
        "ephemeral-storage": f"{shape.storage_gi * 1024 * 1024}Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{(shape.memory_gi * 1024 - reserved_mi) * 1024}Ki",
        "pods": str(shape.pods),
        **shape.extended,
    }


@cache
def _images() -> list[Object]:
    """Return the images, which are the same on every node."""
    images = []
    for number, program in enumerate(_PROGRAMS):
        digest = sha256(program.encode()).hexdigest()
        repository = f"images.fleet.internal/platform/{program}"
        tag = f"v{number % 4 + 1}.{number % 17}.{number % 7}"
        images.append(
            {
                "names": [f"{repository}@sha256:{digest}", f"{repository}:{tag}"],
                "sizeBytes": int(digest[:7], 16) + 1_000_000,
            }
        )
    return sorted(images, key=lambda image: -image["sizeBytes"])
