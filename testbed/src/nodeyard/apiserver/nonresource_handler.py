"""Non-resource URLs: health, version, discovery, OpenAPI."""

from __future__ import annotations

import platform

from nodeyard.apiserver import discovery, errors
from nodeyard.apiserver.negotiation import Shape, negotiate
from nodeyard.apiserver.openapi import Documents
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.request_context import value_response
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.transport import Request, Response
from nodeyard.apiserver.worker_thread import Work
from nodeyard.kube.json import Object
from nodeyard.process.version import VERSION

MAJOR, MINOR = "1", "36"
_DISCOVERY_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_TEXT = "text/plain; charset=utf-8"
_ALIVE = ("ping", "log", "etcd", "poststarthook/crd-informer-synced", "poststarthook/rbac/bootstrap-roles")
# The checks of each endpoint. All of them pass, because the server listens only when it has started.
_HEALTH = {"/healthz": _ALIVE, "/livez": _ALIVE, "/readyz": (*_ALIVE, "informer-sync", "shutdown")}


class NonResourceHandler:
    def __init__(self, registry: Registry, address: str) -> None:
        self._registry = registry
        self._address = address
        self._documents = Documents(registry, f"{MAJOR}.{MINOR}")
        self.version = version()

    async def answer(self, request: Request, info: RequestInfo, work: Work) -> Response:
        """Answer a request. Most of these endpoints accept any method, the rest only GET."""
        path = request.path.rstrip("/") or "/"
        page, _, check = path[1:].partition("/")
        if checks := _HEALTH.get(f"/{page}"):
            if check and check not in checks:
                raise errors.no_page()
            return _health(request, page, () if check else checks)
        if path == "/version":
            _check_get(request)
            return value_response(request, self.version)
        parts = path.strip("/").split("/")
        if parts[0] in ("api", "apis"):
            return self._discover(request, parts)
        if path == "/openapi/v2":
            return _openapi_v2(request)
        if parts[:2] == ["openapi", "v3"]:
            return await self._openapi(parts[2:], work)
        if path == "/":
            return value_response(request, {"paths": self._paths()})
        raise errors.no_page()

    def _discover(self, request: Request, parts: list[str]) -> Response:
        is_core = parts[0] == "api"
        if len(parts) == 1:
            form = negotiate(request.headers.get("accept", ""))
            if form.shape is Shape.DISCOVERY:
                return self._aggregated(request, is_core=is_core)
            found: Object | None = (
                discovery.api_versions(self._address) if is_core else discovery.group_list(self._registry)
            )
        elif is_core:
            found = discovery.resource_list(self._registry, "", parts[1])
        elif len(parts) == 2:
            found = discovery.group(self._registry, parts[1])
        else:
            found = discovery.resource_list(self._registry, parts[1], parts[2])
        if found is None:
            raise self._missing(parts)
        if is_core or len(parts) > 2:
            _check_get(request)
        return value_response(request, found)

    def _missing(self, parts: list[str]) -> errors.ApiError:
        is_known = parts[0] == "api" or discovery.group(self._registry, parts[1]) is not None
        return errors.unknown_path() if is_known else errors.no_page()

    def _aggregated(self, request: Request, *, is_core: bool) -> Response:
        body, tag = discovery.aggregated(self._registry, core=is_core)
        headers = [("ETag", tag), ("Vary", "Accept"), ("Cache-Control", "public")]
        if request.headers.get("if-none-match") == tag:
            # caching clients replace their headers with these, including the content type
            return Response(304, content_type=_DISCOVERY_TYPE, headers=headers)
        return Response(200, body, content_type=_DISCOVERY_TYPE, headers=headers)

    async def _openapi(self, parts: list[str], work: Work) -> Response:
        body = await self._documents.document("/".join(parts), work) if parts else await self._documents.index(work)
        if body is None:
            raise errors.no_page()
        return Response(200, body)

    def _paths(self) -> list[str]:
        groups = [f"/apis/{group['name']}" for group in discovery.group_list(self._registry)["groups"]]
        return sorted([*_HEALTH, "/api", "/api/v1", "/apis", *groups, "/openapi/v3", "/version"])


def _openapi_v2(request: Request) -> Response:
    """A document without paths and definitions.

    kubectl asks for it where OpenAPI v3 does not describe a kind (a List, or one that is not served), finds nothing to
    validate by and goes on, to an error that tells what is wrong.
    """
    if "protobuf" not in request.headers.get("accept", ""):
        info = {"title": "Kubernetes", "version": f"v{MAJOR}.{MINOR}.0"}
        return value_response(request, {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}})
    # Field 1 is the version of the format, field 2 the info with title and version.
    body = b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x04v1.0"
    return Response(200, body, content_type="application/com.github.proto-openapi.spec.v2.v1.0+protobuf")


def _health(request: Request, page: str, checks: tuple[str, ...]) -> Response:
    """Answer `ok`, or with `verbose` a line for each check. Excluded checks count as passed."""
    if not checks or "verbose" not in request.query:
        return Response(200, b"ok", content_type=_TEXT)
    excluded = request.query.get("exclude", ())
    lines = [f"[+]{check} excluded: ok" if check in excluded else f"[+]{check} ok" for check in checks]
    if unknown := sorted({*excluded} - {*checks}):
        named = ", ".join(f'"{each}"' for each in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {named}")
    return Response(200, "\n".join([*lines, f"{page} check passed", ""]).encode(), content_type=_TEXT)


def _check_get(request: Request) -> None:
    if request.method != "GET":
        raise errors.method_not_allowed()


def version() -> Object:
    """Return the Kubernetes version that the server is compatible with; gitVersion names this build."""
    return {
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": f"v{MAJOR}.{MINOR}.0+nodeyard-{VERSION}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{_architecture()}",
    }


def _architecture() -> str:
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
