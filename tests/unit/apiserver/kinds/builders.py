"""Small valid objects of built-in kinds, with overrides."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

CREATED = "2025-12-31T23:00:00Z"
TEMPLATE: Object = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
DEPLOYMENT: Object = {
    "metadata": {"name": "x"},
    "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
}
POD: Object = {"metadata": {"name": "x"}, "spec": TEMPLATE["spec"]}


def named(**fields: Any) -> Object:
    return {"metadata": {"name": "x", "creationTimestamp": CREATED}, **fields}


def node(name: str = "n1", *, labels: Object | None = None, spec: Object | None = None, **status: Any) -> Object:
    metadata = {"name": name, "creationTimestamp": CREATED, "labels": labels or {}}
    return {"metadata": metadata, "spec": spec or {}, "status": status}


def pod(name: str = "p1", *, status: Object | None = None, metadata: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "creationTimestamp": CREATED, **(metadata or {})},
        "spec": {"containers": [container("a"), container("b")], **spec},
        "status": status or {},
    }


def container(name: str, **fields: Any) -> Object:
    return {"name": name, "image": f"registry/{name}:v1", **fields}


def container_status(name: str, *, restarts: int = 0, ready: bool = False, **state: Any) -> Object:
    return {"name": name, "restartCount": restarts, "ready": ready, "state": state}


def running(name: str, **fields: Any) -> Object:
    return {**container_status(name, ready=True, running={}), **fields}


def ended(code: int = 0, **fields: Any) -> Object:
    return {"terminated": {"exitCode": code, "finishedAt": "2025-12-31T23:50:00Z", **fields}}


def workload(name: str = "w", *, status: Object | None = None, **spec: Any) -> Object:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container("a"), container("b")]}}
    return {
        "metadata": {"name": name, "creationTimestamp": CREATED},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
        "status": status or {},
    }


def service(*, status: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": "s", "creationTimestamp": CREATED, "uid": "u"},
        "spec": {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}], **spec},
        "status": status or {},
    }
