"""OpenAPI v3, one document per group version: what `kubectl explain` and client-side validation read."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from nodeyard.apiserver.discovery import VIRTUAL
from nodeyard.apiserver.kinds.openapi import openapi_schema, openapi_schemas
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.resources import GroupVersionKind, Resource
from nodeyard.apiserver.responses import encode
from nodeyard.apiserver.worker_thread import Work
from nodeyard.kube.json import Json, Object

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_API_VERSION = "The version of the schema this object is written in."
_KIND = "The kind of this object."


class _Document(NamedTuple):
    resources: tuple[Resource, ...]
    """The resources that it describes; a changed CRD is another one."""
    body: bytes
    digest: str


class Documents:
    """The documents of a registry, built on first use and when their resources have changed.

    They are built in the worker thread: those of many or large CRDs take long.
    """

    def __init__(self, registry: Registry, version: str) -> None:
        self._registry = registry
        self._version = version
        self._built: dict[str, _Document] = {}

    async def index(self, work: Work) -> bytes:
        """The index at `/openapi/v3`: every document, with a hash for the clients' cache."""
        paths, served = {}, self._served()
        for path, resources in sorted(served.items()):
            found = await self._find(path, resources, work)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={found.digest}"}
        for gone in self._built.keys() - served.keys():
            del self._built[gone]
        return encode({"paths": paths})

    async def document(self, path: str, work: Work) -> bytes | None:
        """The document `api/v1` or `apis/GROUP/VERSION`; None if it is not served."""
        resources = self._served().get(path)
        return None if resources is None else (await self._find(path, resources, work)).body

    def _served(self) -> dict[str, list[Resource]]:
        found: dict[str, list[Resource]] = {_path(group, version): [] for group, version, *_ in VIRTUAL}
        for resource in self._registry:
            for name, typed in resource.versions.items():
                if typed.served:
                    found.setdefault(_path(resource.group, name), []).append(resource)
        return found

    async def _find(self, path: str, resources: list[Resource], work: Work) -> _Document:
        known = self._built.get(path)
        if known is None or list(map(id, known.resources)) != list(map(id, resources)):
            known = self._built[path] = await work.run(True, lambda: self._build(path, resources))
        return known

    def _build(self, path: str, resources: list[Resource]) -> _Document:
        body = encode(_document(resources, *_group_version(path), self._version))
        return _Document(tuple(resources), body, hashlib.sha256(body).hexdigest().upper())


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _group_version(path: str) -> tuple[str, str]:
    parts = path.split("/")
    return ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])


def _document(resources: list[Resource], group: str, version: str, server_version: str) -> Object:
    schemas: Object = dict(openapi_schemas(group, version))
    paths: Object = {}
    for resource in resources:
        if resource.is_custom:
            schemas.setdefault(_OBJECT_META, openapi_schema(_OBJECT_META))
            # Encoded one by one: a single encoding of megabytes would hold the interpreter, and the event loop with it.
            schemas[_definition(resource, version)] = msgspec.Raw(encode(_custom_schema(resource, version)))
        paths.update(_resource_paths(resource, version))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": server_version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _definition(resource: Resource, version: str) -> str:
    """The name of a definition, `dev.nodeyard.v1.Thing`: the group is reversed, as on the real server."""
    return ".".join([*reversed(resource.group.split(".")), version, resource.kind])


def _custom_schema(resource: Resource, version: str) -> Object:
    given: Json = resource.versions[version].openapi or {"type": "object"}
    properties = dict(given.get("properties") or {})
    properties["apiVersion"] = {"type": "string", "description": _API_VERSION}
    properties["kind"] = {"type": "string", "description": _KIND}
    properties["metadata"] = {
        "allOf": [{"$ref": f"#/components/schemas/{_OBJECT_META}"}],
        "description": "Standard object metadata.",
    }
    gvk = _extension(resource.gvk(version))
    return {**given, "properties": properties, "x-kubernetes-group-version-kind": [gvk]}


def _extension(gvk: GroupVersionKind) -> Object:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_LIST_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETE_PARAMETERS = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")


def _resource_paths(resource: Resource, version: str) -> Object:
    root = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    base = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    gvk = resource.gvk(version)
    in_path = ["namespace"] if resource.namespaced else []
    collection: Object = {
        "get": _operation("list", gvk, _LIST_PARAMETERS),
        "post": _operation("post", gvk, _WRITE_PARAMETERS),
        "parameters": [_parameter(name, "path") for name in in_path],
    }
    if resource.strategy.allows_delete_collection:
        collection["delete"] = _operation("deletecollection", gvk, (*_LIST_PARAMETERS, *_DELETE_PARAMETERS))
    named = [_parameter(name, "path") for name in [*in_path, "name"]]
    single = {
        "get": _operation("get", gvk, ()),
        "put": _operation("put", gvk, _WRITE_PARAMETERS),
        "patch": _operation("patch", gvk, (*_WRITE_PARAMETERS, "force")),
        "delete": _operation("delete", gvk, _DELETE_PARAMETERS),
        "parameters": named,
    }
    paths: Object = {base: collection, f"{base}/{{name}}": single}
    if resource.namespaced:
        paths[f"{root}/{resource.plural}"] = {"get": _operation("list", gvk, _LIST_PARAMETERS)}
    for name, kind, verbs in resource.subresources(version):
        methods = {"get": "get", "update": "put", "patch": "patch", "create": "post"}
        operations: Object = {
            methods[verb]: _operation(methods[verb], kind, _WRITE_PARAMETERS if verb != "get" else ()) for verb in verbs
        }
        paths[f"{base}/{{name}}/{name}"] = {**operations, "parameters": named}
    return paths


def _operation(action: str, gvk: GroupVersionKind, parameters: tuple[str, ...]) -> Object:
    return {
        "parameters": [_parameter(name, "query") for name in parameters],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _extension(gvk),
    }


def _parameter(name: str, place: str) -> Object:
    shown: Object = {"name": name, "in": place, "schema": {"type": "string", "uniqueItems": True}}
    return {**shown, "required": True} if place == "path" else shown
