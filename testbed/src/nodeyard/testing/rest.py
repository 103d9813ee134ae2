"""Small blocking client of an API server, independent of `nodeyard.client`.

Tests that start a server are often not asynchronous and must not depend on the client that they test.
"""

from __future__ import annotations

import http.client
import json
from http import HTTPStatus
from typing import Any

from nodeyard.testing.connection_pool import ConnectionPool
from nodeyard.testing.wait import until

TIMEOUT = 30.0
STARTING = "storage is (re)initializing"  # first requests of a new custom kind; clients retry


class RestError(Exception):
    """An error response of the API server: status, reason and message of its Status."""

    def __init__(self, status: int, request: str, answer: Any) -> None:
        body = answer if isinstance(answer, dict) else {}
        self.status = status
        self.reason = body.get("reason", "")
        self.message = body.get("message", str(answer))
        self.causes: list[dict[str, str]] = (body.get("details") or {}).get("causes") or []
        super().__init__(f"{request}: {status} {self.reason}: {self.message}")


class Rest:
    """Requests with a bearer token; thread-safe."""

    def __init__(self, url: str, authority: bytes, token: str) -> None:
        self.url = url
        self._connections = ConnectionPool(url, authority)
        self._token = token
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    def close(self) -> None:
        """Close idle connections; later requests connect again."""
        self._connections.close()

    def status(self, path: str, timeout: float = 2.0) -> int:
        """Return the status code of a GET; 0 without a response."""
        try:
            return self._send("GET", path, None, "", timeout)[0]
        except (OSError, http.client.HTTPException):
            return 0

    def exists(self, path: str) -> bool:
        """Return False for a 404; raise RestError for another error status, OSError without a response."""
        try:
            self.get(path)
        except RestError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        timeout: float = TIMEOUT,
    ) -> Any:
        """Return the decoded response; raise RestError for status 400 and above."""

        def response_unless_starting() -> tuple[int, Any] | None:
            status, answer = self._send(method, path, body, content_type, timeout)
            return None if status == 429 and STARTING in str(answer) else (status, answer)

        status, answer = until(response_unless_starting, f"{method} {path} is answered", timeout)
        if status >= 400:
            raise RestError(status, f"{method} {path}", answer)
        return answer

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def create(self, obj: dict[str, Any]) -> Any:
        return self.call("POST", self.collection(obj), obj)

    def replace_or_create(self, obj: dict[str, Any]) -> Any:
        """Create the object, or replace an existing one."""
        try:
            return self.create(obj)
        except RestError as error:
            if error.reason != "AlreadyExists":
                raise
        path = f"{self.collection(obj)}/{obj['metadata']['name']}"
        version = self.get(path)["metadata"]["resourceVersion"]
        return self.call("PUT", path, {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}})

    def collection(self, obj: dict[str, Any]) -> str:
        """Return the path of an object's collection."""
        api_version, kind = obj["apiVersion"], obj["kind"]
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if (api_version, kind) not in self._plurals:
            for resource in self.get(base)["resources"]:
                if "/" not in resource["name"]:
                    self._plurals[api_version, resource["kind"]] = (resource["name"], resource["namespaced"])
        plural, namespaced = self._plurals[api_version, kind]
        if not namespaced:
            return f"{base}/{plural}"
        return f"{base}/namespaces/{obj['metadata'].get('namespace', 'default')}/{plural}"

    def _send(self, method: str, path: str, body: Any, content_type: str, timeout: float) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers["Content-Type"] = content_type
        with self._connections.connection(timeout) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
        try:
            return response.status, json.loads(content)
        except ValueError:
            return response.status, content.decode(errors="replace")
