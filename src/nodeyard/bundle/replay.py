"""A transport that serves one cluster of a bundle, read-only.

    client = Client(BundleTransport(bundle.cluster, bundle.manifest.omitted))

Lists, objects, discovery and the version are those of the bundle; what could not be read is refused with the reason of
that time. Watches are silent. Nothing else is answered, so a planner that reads from here needs no cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from nodeyard.bundle.model import ClusterState, Omission, ServedResource, identify
from nodeyard.bundle.paths import ReadPath, parse_path
from nodeyard.bundle.recorder import NO_STREAMING_LIST, silence
from nodeyard.client.errors import TransportError
from nodeyard.client.transport import Request, Response, Stream
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import parse_fields, parse_labels

_encode = msgspec.json.Encoder().encode


_decode = msgspec.json.Decoder().decode


class BundleTransport:
    def __init__(self, cluster: ClusterState, omitted: Iterable[Omission] = ()) -> None:
        self._cluster = cluster
        self._kinds = {each.gvr: each.kind for each in cluster.resources}
        self._denied = {each.what: each.reason for each in omitted if each.cluster == cluster.name}

    async def send(self, request: Request) -> Response:
        if self._cluster.error:
            raise TransportError(self._cluster.error, may_have_run=False)
        if request.method != "GET":
            raise TransportError(f"{request.method} {request.path}: a bundle is read-only", may_have_run=False)
        path = parse_path(request.path)
        if request.path == "/version":
            return _answer(self._cluster.version)
        if request.path in ("/api", "/apis"):
            return _answer(self._discovery(is_core=request.path == "/api"))
        if path is None:
            return self._discover_version(request.path)
        return self._read(path, request.query)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        path = parse_path(request.path)
        refused = None if path is None else self._refuse(path)
        if refused is not None:
            yield Stream(refused.status, {}, _once(refused.body))
        elif request.query.get("sendInitialEvents"):
            yield Stream(400, {}, _once(NO_STREAMING_LIST))
        else:
            yield Stream(200, {}, silence())

    async def close(self) -> None:
        """Nothing is open."""

    # objects

    def _refuse(self, path: ReadPath) -> Response | None:
        """Return the refusal of what the bundle does not have; None if it has it."""
        reason = self._denied.get(str(path))
        if reason:
            return _failure(403, "Forbidden", reason)
        if path.gvr in self._cluster.objects:
            return None
        if path.gvr in self._kinds:
            return _failure(403, "Forbidden", f"{path} is forbidden: it is not in the bundle")
        return _failure(404, "NotFound", f"{path} is not served")

    def _read(self, path: ReadPath, query: Mapping[str, str]) -> Response:
        refused = self._refuse(path)
        if refused is not None:
            return refused
        objects = self._cluster.objects[path.gvr].raw
        if path.name:
            for raw in objects:
                metadata = identify(raw)
                if (metadata.namespace, metadata.name) == (path.namespace, path.name):
                    return Response(200, {}, raw)
            return _failure(404, "NotFound", f'{path.gvr.resource} "{path.name}" not found')
        labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
        if path.namespace or labels or fields:
            objects = [raw for raw in objects if _is_selected(raw, path.namespace, labels, fields)]
        kind = self._kinds.get(path.gvr, "")
        head = f'{{"kind":"{kind}List","apiVersion":"{path.gvr.api_version}","metadata":{{"resourceVersion":"1"}},'
        return Response(200, {}, head.encode() + b'"items":[' + b",".join(objects) + b"]}")

    # discovery

    def _discovery(self, *, is_core: bool) -> Object:
        groups: dict[str, dict[str, list[Object]]] = defaultdict(lambda: defaultdict(list))
        for each in self._cluster.resources:
            if is_core == (not each.group):
                groups[each.group][each.version].append(_describe(each))
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "items": [
                {
                    "metadata": {"name": group},
                    "versions": [{"version": name, "resources": found} for name, found in versions.items()],
                }
                for group, versions in groups.items()
            ],
        }

    def _discover_version(self, path: str) -> Response:
        version = path.removeprefix("/apis/").removeprefix("/api/")
        found = [each for each in self._cluster.resources if each.gvr.api_version == version]
        if not found:
            return _failure(404, "NotFound", f"{path} is not served")
        entries = [
            {
                "name": f"{each.resource}/{sub}" if sub else each.resource,
                "singularName": each.singular,
                "namespaced": each.namespaced,
                "kind": each.kind,
                "verbs": list(each.verbs),
                "shortNames": list(each.short_names),
                "categories": list(each.categories),
            }
            for each in found
            for sub in ("", *each.subresources)
        ]
        return _answer({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": entries})


def _describe(each: ServedResource) -> Object:
    return {
        "resource": each.resource,
        "responseKind": {"group": each.group, "version": each.version, "kind": each.kind},
        "scope": "Namespaced" if each.namespaced else "Cluster",
        "singularResource": each.singular,
        "shortNames": list(each.short_names),
        "categories": list(each.categories),
        "verbs": list(each.verbs),
        "subresources": [{"subresource": sub} for sub in each.subresources],
    }


def _is_selected(raw: bytes, namespace: str, labels: str, fields: str) -> bool:
    metadata = identify(raw)
    if namespace and metadata.namespace != namespace:
        return False
    if labels and not parse_labels(labels).matches(metadata.labels or {}):
        return False
    if not fields:
        return True
    selector, obj = parse_fields(fields), _decode(raw)
    return selector.matches({each.field: _text_at(obj, each.field) for each in selector.requirements})


def _text_at(value: Json, path: str) -> str:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _answer(content: Any) -> Response:
    return Response(200, {}, _encode(content))


def _failure(code: int, reason: str, message: str) -> Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
    return Response(code, {}, _encode({**status, "message": message}))


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
