"""The table of nodes."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, NONE, Printer, age_of, name_of, spec_of, status_of, text_column
from nodeyard.kube import meta
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import ROLE_PREFIX

_ROLE_LABEL = "kubernetes.io/role"
_UNKNOWN = "<unknown>"


def node_cells(obj: Object, now: datetime) -> list[Json]:
    info = status_of(obj).get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or _UNKNOWN
    if info.get("architecture"):
        kernel = f"{kernel} ({info['architecture']})"
    return [
        name_of(obj),
        _readiness(obj),
        ",".join(_roles(obj)) or NONE,
        age_of(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or _UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _readiness(obj: Object) -> str:
    words = "Unknown"
    for condition in status_of(obj).get("conditions") or ():
        if condition.get("type") == "Ready":
            words = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{words},SchedulingDisabled" if spec_of(obj).get("unschedulable") else words


def _roles(obj: Object) -> list[str]:
    roles = set()
    for key, value in meta.labels(obj).items():
        if key.startswith(ROLE_PREFIX):
            roles.add(key.removeprefix(ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return sorted(roles - {""})


def _address(obj: Object, kind: str) -> str:
    for address in status_of(obj).get("addresses") or ():
        if address.get("type") == kind:
            return str(address.get("address", ""))
    return NONE


NODE = Printer(
    (
        NAME,
        text_column("Status", "Whether the node is ready and takes pods."),
        text_column("Roles", "Roles from the node's labels."),
        AGE,
        text_column("Version", "Version of the kubelet."),
        text_column("Internal-IP", "Address inside the cluster.", wide=True),
        text_column("External-IP", "Address outside the cluster.", wide=True),
        text_column("OS-Image", "Operating system.", wide=True),
        text_column("Kernel-Version", "Kernel and architecture.", wide=True),
        text_column("Container-Runtime", "Container runtime and its version.", wide=True),
    ),
    node_cells,
)
