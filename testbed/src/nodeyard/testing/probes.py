"""Health probes of processes on the loopback interface.

Another process of the same kind may have taken the port first. So where TLS is served, the certificate must be of this
control plane's CA.
"""

from __future__ import annotations

import functools
import http.client
import json
import ssl
from pathlib import Path
from typing import Any

from nodeyard.testing.ports import LOOPBACK

TIMEOUT = 2.0


def is_healthy(port: int, path: str) -> bool:
    """Return whether an HTTP endpoint answers 200."""
    return _request(http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT), "GET", path)[0] == 200


def is_healthy_tls(port: int, path: str, authority: Path) -> bool:
    """Return whether an HTTPS endpoint with a certificate of this CA answers 200."""
    connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=TIMEOUT, context=_trust(authority.read_text()))
    return _request(connection, "GET", path)[0] == 200


def post(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """POST over HTTP; return the decoded response, empty if there is none."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT)
    status, content = _request(connection, "POST", path, json.dumps(body))
    if status != 200:
        return {}
    answer = json.loads(content)
    return answer if isinstance(answer, dict) else {}


def _request(
    connection: http.client.HTTPConnection, method: str, path: str, body: str | None = None
) -> tuple[int, bytes]:
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


@functools.lru_cache(maxsize=32)
def _trust(authority: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority)
