"""HTTP client for tests about HTTP: returns status, headers and bytes, and raises no error for a status.

`Rest` is for tests that want objects.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from nodeyard.testing.connection_pool import ConnectionPool

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Response:
    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def reason(self) -> str:
        """Return the reason of the Status."""
        return str(self.json.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))

    @property
    def causes(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = (self.json.get("details") or {}).get("causes") or []
        return found

    @property
    def warnings(self) -> list[str]:
        return self.headers.get_all("Warning") or []


class Session:
    """Requests with a bearer token, or anonymous. Each opens a connection, unless `keep_alive`."""

    def __init__(self, url: str, authority: bytes, token: str = "", *, keep_alive: bool = False) -> None:
        self._connections = ConnectionPool(url, authority)
        self._token = token
        self._keep_alive = keep_alive

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request; a body that is neither bytes nor None is encoded as JSON."""
        with self._connections.connection(30.0) as connection:
            connection.request(
                method,
                _target(path, query),
                body if body is None or isinstance(body, bytes) else json.dumps(body).encode(),
                self._headers(body, content_type, accept, headers),
            )
            response = connection.getresponse()
            answer = Response(response.status, response.headers, response.read())
            if not self._keep_alive:
                connection.close()
        return answer

    def get(self, path: str, **options: Any) -> Response:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> Response:
        return self.request("POST", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> Response:
        return self.request("PUT", path, body, **options)

    def patch(self, path: str, body: Any, content_type: str = MERGE, **options: Any) -> Response:
        return self.request("PATCH", path, body, content_type=content_type, **options)

    def delete(self, path: str, body: Any = None, **options: Any) -> Response:
        return self.request("DELETE", path, body, **options)

    @contextmanager
    def watch(
        self, path: str, *, query: Mapping[str, Any] | None = None, accept: str = JSON, timeout: float = 10.0
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Yield the events of a watch; raise TimeoutError if none comes within `timeout`."""
        connection = self._connections.new(timeout)
        try:
            target = _target(path, {"watch": "true", "timeoutSeconds": 60, **(query or {})})
            connection.request("GET", target, headers=self._headers(None, JSON, accept, None))
            response = connection.getresponse()
            if response.status != 200:
                raise AssertionError(f"watch {target}: {response.status} {response.read().decode()}")
            yield (json.loads(line) for line in iter(response.readline, b"") if line.strip())
        finally:
            connection.close()

    def _headers(self, body: Any, content_type: str, accept: str, headers: Mapping[str, str] | None) -> dict[str, str]:
        sent = {"Accept": accept, "User-Agent": "conformance/1"}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            sent["Content-Type"] = content_type
        return {**sent, **(headers or {})}


def _target(path: str, query: Mapping[str, Any] | None) -> str:
    if not query:
        return path
    separator = "&" if "?" in path else "?"
    return f"{path}{separator}{urlencode(query, doseq=True)}"
