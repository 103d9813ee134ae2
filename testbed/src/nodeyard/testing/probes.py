"""Asking a process on the loopback interface whether it is well.

A port may have been taken by somebody else's process of the same kind in the moment before ours wanted it. So where it
can be done, the answer has to prove whose it is: by a certificate of this control plane's own authority.
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


def answers(port: int, path: str) -> bool:
    """Whether a plain HTTP endpoint answers 200."""
    return _ask(http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT), "GET", path)[0] == 200


def answers_trusted(port: int, path: str, authority: Path) -> bool:
    """Whether an endpoint whose certificate this authority issued answers 200."""
    connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=TIMEOUT, context=_trust(authority.read_text()))
    return _ask(connection, "GET", path)[0] == 200


def post(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The decoded answer to a POST over plain HTTP; empty when there is none."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT)
    status, content = _ask(connection, "POST", path, json.dumps(body))
    if status != 200:
        return {}
    answer = json.loads(content)
    return answer if isinstance(answer, dict) else {}


def _ask(connection: http.client.HTTPConnection, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
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
