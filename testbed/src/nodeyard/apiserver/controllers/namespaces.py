"""The namespace controller: deletes the content of a terminating namespace, then removes the namespace.

Pods are deleted first, everything else when no pod is left. Objects with finalizers and pods in their grace period are
awaited: their deletion events queue the namespace again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.apiserver.controllers.controller import Cluster, Controller, service_account
from nodeyard.apiserver.controllers.metadata import NAMESPACES, PODS, may_be_deleting, metadata_of
from nodeyard.apiserver.controllers.namespace_content import Content, differs
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.store import Event, Key, Stored
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import parse_rfc3339

_FINALIZER: Final = "kubernetes"
_FINALIZERS_WAIT: Final = 15
_FINISHED: Final = ("Succeeded", "Failed")


class _PodSpec(msgspec.Struct, rename="camel"):
    termination_grace_period_seconds: int | None = None


class _PodStatus(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    spec: _PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


_decode_pod = msgspec.json.Decoder(_Pod).decode


class ContentRemainsError(Exception):
    """The content of the namespace cannot be deleted now."""


class NamespaceController(Controller[str]):
    name = "namespace-controller"
    user = service_account("namespace-controller")

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._leaving: dict[str, set[tuple[GroupResource, Key]]] = {}
        """Terminating namespaces, with their remaining content after the last pass."""

    def observe(self, resource: GroupResource, event: Event) -> None:
        if resource == NAMESPACES:
            self._observe_namespace(event)
        elif self._leaving and event.type != "MODIFIED":
            self._observe_content(resource, event)

    def _observe_namespace(self, event: Event) -> None:
        name = event.stored.key.name
        if event.type == "DELETED":
            self._leaving.pop(name, None)
        elif may_be_deleting(event.stored.raw):
            self._leaving.setdefault(name, set())
            self.queue.add(name)

    def _observe_content(self, resource: GroupResource, event: Event) -> None:
        key = event.stored.key
        remaining = self._leaving.get(key.namespace)
        if remaining is None:
            return
        if event.type == "DELETED":
            remaining.discard((resource, key))
        if event.type == "ADDED" or not remaining:
            self.queue.add(key.namespace)

    async def reconcile(self, key: str) -> float | None:
        stored = self.store.get(NAMESPACES, "", key)
        if stored is None or not metadata_of(stored.raw).is_deleting:
            self._leaving.pop(key, None)
            return None
        namespace = stored.object()
        if _FINALIZER not in (namespace.get("spec", {}).get("finalizers") or ()):
            return None
        return await self._empty(namespace)

    async def _empty(self, namespace: Object) -> float | None:
        name = namespace["metadata"]["name"]
        content = Content()
        left: set[tuple[GroupResource, Key]] = set()
        await self._delete_all(PODS, namespace, content, left)
        awaits_pods = bool(left)
        if not awaits_pods:
            for resource in self._resources():
                await self._delete_all(resource.key, namespace, content, left)
        self._leaving[name] = left
        namespace = await self._report(namespace, content, says_remaining=not awaits_pods)
        if content.failures:
            raise ContentRemainsError(", ".join(content.failures))
        if content.wait:
            return content.wait // 2 + 1
        await self._release(namespace)
        return None

    def _resources(self) -> list[Resource]:
        """The served namespaced resources that have objects."""
        served = (self.cluster.registry.get(*key) for key in self.store.resources() if key != PODS)
        return [resource for resource in served if resource is not None and resource.namespaced]

    async def _delete_all(
        self, resource: GroupResource, namespace: Object, content: Content, left: set[tuple[GroupResource, Key]]
    ) -> None:
        name = namespace["metadata"]["name"]
        found = list(self.store.list(resource, name))
        if not found:
            return
        grace = self._grace(found, namespace) if resource == PODS else 0
        try:
            await self.call("DELETE", self.url(resource, Key(name, "")), {"propagationPolicy": "Background"})
        except ApiError as error:
            content.failures.append(error.message)
            left.update((resource, stored.key) for stored in found)
            return
        remaining = list(self.store.list(resource, name))
        if not remaining:
            return
        left.update((resource, stored.key) for stored in remaining)
        content.remaining[resource] = len(remaining)
        finalizers = [finalizer for stored in remaining for finalizer in metadata_of(stored.raw).finalizers or ()]
        content.finalizers.update(finalizers)
        if grace or finalizers:
            content.wait = max(content.wait, grace or _FINALIZERS_WAIT)
        else:
            content.failures.append(self._unexpected(resource, name))

    def _unexpected(self, resource: GroupResource, namespace: str) -> str:
        served = self.cluster.registry.get(*resource)
        version = served.storage_version if served else ""
        what = f"{resource.group}/{version}, Resource={resource.plural}"
        return f"unexpected items still remain in namespace: {namespace} for gvr: {what}"

    def _grace(self, pods: list[Stored], namespace: Object) -> int:
        """The remaining grace period of the pods, from the deletion of the namespace; 0 if it is over."""
        longest = 0
        for stored in pods:
            pod = _decode_pod(stored.raw)
            if pod.status.phase not in _FINISHED:
                longest = max(longest, pod.spec.termination_grace_period_seconds or 0)
        deleted = parse_rfc3339(namespace["metadata"]["deletionTimestamp"])
        return longest if (self.now - deleted).total_seconds() < longest else 0

    async def _report(self, namespace: Object, content: Content, *, says_remaining: bool) -> Object:
        status = namespace.get("status") or {}
        current = status.get("conditions") or []
        conditions = content.conditions(current, self.now, says_remaining=says_remaining)
        if not differs(current, conditions) and status.get("phase") == "Terminating":
            return namespace
        changed = {**namespace, "status": {**status, "phase": "Terminating", "conditions": conditions}}
        url = self.url(NAMESPACES, Key("", namespace["metadata"]["name"]), "status")
        answer: Object = await self.call("PUT", url, changed)
        return answer

    async def _release(self, namespace: Object) -> None:
        """Remove our finalizer; the namespace is removed unless it has others."""
        spec = namespace.get("spec") or {}
        kept = sorted(finalizer for finalizer in spec.get("finalizers") or () if finalizer != _FINALIZER)
        changed = {**namespace, "spec": {**spec, "finalizers": kept}}
        await self.call("PUT", self.url(NAMESPACES, Key("", namespace["metadata"]["name"]), "finalize"), changed)
