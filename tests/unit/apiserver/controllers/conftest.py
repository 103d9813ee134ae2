"""A server on a virtual clock, and builders of objects for controllers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.server import Server
from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_micro
from nodeyard.process.clock import VirtualClock

Object = dict[str, Any]
MERGE = "application/merge-patch+json"


class Env:
    """One cluster: creates objects with defaults, and reads them."""

    def __init__(self, server: Server, clock: VirtualClock) -> None:
        self.server = server
        self.clock = clock

    # requests

    async def call(self, method: str, url: str, body: Any = None, content_type: str = "application/json") -> Any:
        return await self.server.call(method, url, body, content_type=content_type)

    async def get(self, url: str) -> Object | None:
        try:
            return await self.call("GET", url)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def patch(self, url: str, patch: Object) -> Object:
        return await self.call("PATCH", url, patch, MERGE)

    async def delete(self, url: str, policy: str = "", **options: Any) -> Object:
        if policy:
            options["propagationPolicy"] = policy
        return await self.call("DELETE", url, options or None)

    async def settle(self) -> None:
        await self.server.controllers.idle()

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await self.settle()

    # builders

    async def create(self, collection: str, name: str, **fields: Any) -> Object:
        metadata = {"name": name, **fields.pop("metadata", {})}
        return await self.call("POST", collection, {"metadata": metadata, **fields})

    async def namespace(self, name: str) -> Object:
        return await self.create("/api/v1/namespaces", name)

    async def config_map(self, name: str, namespace: str = "default", **metadata: Any) -> Object:
        return await self.create(f"/api/v1/namespaces/{namespace}/configmaps", name, metadata=metadata)

    async def pod(
        self,
        name: str,
        namespace: str = "default",
        *,
        node: str = "",
        ready: bool | None = None,
        phase: str = "Running",
        spec: Object | None = None,
        **metadata: Any,
    ) -> Object:
        """Create a pod, with its status if `ready` is given."""
        wanted = {"containers": [{"name": "main", "image": "image"}], **(spec or {})}
        if node:
            wanted["nodeName"] = node
        pod = await self.create(f"/api/v1/namespaces/{namespace}/pods", name, metadata=metadata, spec=wanted)
        if ready is None:
            return pod
        return await self.set_ready(name, namespace, ready=ready, phase=phase)

    async def set_ready(self, name: str, namespace: str = "default", *, ready: bool, phase: str = "Running") -> Object:
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": phase, "conditions": [condition]}
        return await self.patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status})

    async def budget(self, name: str, labels: dict[str, str], namespace: str = "default", **spec: Any) -> Object:
        return await self.create(
            f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
            name,
            spec={"selector": {"matchLabels": labels}, **spec},
        )

    async def workload(self, plural: str, name: str, replicas: int, **metadata: Any) -> Object:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "image"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        if plural == "statefulsets":
            spec["serviceName"] = name
        return await self.create(f"/apis/apps/v1/namespaces/default/{plural}", name, metadata=metadata, spec=spec)

    async def definition(self, kind: str = "Fleet", *, has_scale: bool = False) -> Object:
        """Install a namespaced custom kind in example.com/v1."""
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version: Object = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        if has_scale:
            version["subresources"] = {
                "status": {},
                "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
            }
        spec = {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        }
        collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made = await self.create(collection, f"{plural}.example.com", spec=spec)
        await self.server.idle()
        return made

    async def custom(self, name: str, namespace: str = "default", kind: str = "Fleet", **fields: Any) -> Object:
        collection = f"/apis/example.com/v1/namespaces/{namespace}/{kind.lower()}s"
        return await self.create(collection, name, apiVersion="example.com/v1", kind=kind, **fields)

    async def node(self, name: str, *, ready: str | None = None, **metadata: Any) -> Object:
        node = await self.create("/api/v1/nodes", name, metadata=metadata)
        return await self.heartbeat(name, ready=ready) if ready is not None else node

    async def heartbeat(self, name: str, *, ready: str = "True", **conditions: str) -> Object:
        now = format_rfc3339(self.clock.now())
        posted = [
            {"type": kind, "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}
            for kind, status in {"Ready": ready, **conditions}.items()
        ]
        return await self.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": posted}})

    async def renew_lease(self, node: str) -> Object:
        collection = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {
            "holderIdentity": node,
            "leaseDurationSeconds": 40,
            "renewTime": format_rfc3339_micro(self.clock.now()),
        }
        if await self.get(f"{collection}/{node}") is None:
            return await self.create(collection, node, spec=spec)
        return await self.patch(f"{collection}/{node}", {"spec": spec})

    def moment(self, seconds: float = 0) -> str:
        """Return a time in the API's format, by default now."""
        return format_rfc3339(self.clock.now() + timedelta(seconds=seconds))

    @staticmethod
    def owner(obj: Object, **more: Any) -> Object:
        """Build an owner reference to an object."""
        metadata = obj["metadata"]
        known = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        return {**known, "name": metadata["name"], "uid": metadata["uid"], **more}

    async def evict(self, name: str, namespace: str = "default", query: str = "", **options: Any) -> Object:
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        if options:
            body["deleteOptions"] = options
        return await self.call("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction{query}", body)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def idle_env(clock):
    """A cluster without controllers."""
    server = Server(clock, seed=1)
    await server.start(controllers=())
    yield Env(server, clock)
    await server.stop()


@pytest.fixture
async def env(clock):
    """A cluster with all controllers."""
    server = Server(clock, seed=1)
    await server.start()
    made = Env(server, clock)
    await made.settle()
    yield made
    await server.stop()
