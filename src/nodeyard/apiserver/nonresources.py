"""Paths that are not objects: health, version, discovery, OpenAPI."""

from __future__ import annotations

import platform

from nodeyard import __version__
from nodeyard.apiserver import discovery, errors
from nodeyard.apiserver.calls import value_response
from nodeyard.apiserver.http import Request, Response
from nodeyard.apiserver.negotiation import Shape, negotiate
from nodeyard.apiserver.openapi import Documents
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.requests import RequestInfo
from nodeyard.kube.json import Object

MAJOR, MINOR = "1", "36"
_DISCOVERY_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_HEALTH = ("/healthz", "/livez", "/readyz")


class NonResources:
    def __init__(self, registry: Registry, address: str) -> None:
        self._registry = registry
        self._address = address
        self._documents = Documents(registry, f"{MAJOR}.{MINOR}")

    def answer(self, asked: Request, info: RequestInfo) -> Response:
        """Most of these pages do not care about the method; the rest are for GET alone."""
        path = asked.path.rstrip("/") or "/"
        if path in _HEALTH or path in ("/healthz/ping", "/livez/ping", "/readyz/ping"):
            return Response(200, b"ok", content_type="text/plain; charset=utf-8")
        if path == "/version":
            _check_get(asked)
            return value_response(asked, version())
        parts = path.strip("/").split("/")
        if parts[0] in ("api", "apis"):
            return self._discover(asked, parts)
        if parts[:2] == ["openapi", "v3"]:
            return self._openapi(parts[2:])
        if path == "/":
            return value_response(asked, {"paths": self._paths()})
        raise errors.no_page()

    def _discover(self, asked: Request, parts: list[str]) -> Response:
        is_core = parts[0] == "api"
        if len(parts) == 1:
            form = negotiate(asked.headers.get("accept", ""))
            if form.shape is Shape.DISCOVERY:
                return self._aggregated(asked, is_core=is_core)
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
            _check_get(asked)
        return value_response(asked, found)

    def _missing(self, parts: list[str]) -> errors.ApiError:
        is_known = parts[0] == "api" or discovery.group(self._registry, parts[1]) is not None
        return errors.unknown_path() if is_known else errors.no_page()

    def _aggregated(self, asked: Request, *, is_core: bool) -> Response:
        body, tag = discovery.aggregated(self._registry, core=is_core)
        headers = [("ETag", tag), ("Vary", "Accept"), ("Cache-Control", "public")]
        if asked.headers.get("if-none-match") == tag:
            # clients that cache replace the headers they have by these, the content type too
            return Response(304, content_type=_DISCOVERY_TYPE, headers=headers)
        return Response(200, body, content_type=_DISCOVERY_TYPE, headers=headers)

    def _openapi(self, parts: list[str]) -> Response:
        body = self._documents.document("/".join(parts)) if parts else self._documents.index()
        if body is None:
            raise errors.no_page()
        return Response(200, body)

    def _paths(self) -> list[str]:
        groups = [f"/apis/{group['name']}" for group in discovery.group_list(self._registry)["groups"]]
        return sorted([*_HEALTH, "/api", "/api/v1", "/apis", *groups, "/openapi/v3", "/version"])


def _check_get(asked: Request) -> None:
    if asked.method != "GET":
        raise errors.method_not_allowed()


def version() -> Object:
    """Compatible with this Kubernetes version, and honest about being none of its builds."""
    return {
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": f"v{MAJOR}.{MINOR}.0+nodeyard-{__version__}",
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
