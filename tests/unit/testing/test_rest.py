"""The blocking client, against a server with given responses."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nodeyard.process.certificates import Authority
from nodeyard.testing.ports import LOOPBACK, free_port
from nodeyard.testing.probes import is_healthy, is_healthy_tls, post
from nodeyard.testing.rest import STARTING, Rest, RestError

RESOURCES = {
    "resources": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
        {"name": "nodes", "kind": "Node", "namespaced": False},
        {"name": "nodes/status", "kind": "Node", "namespaced": False},
    ]
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


class Script:
    """A server that returns these responses in order, the last one repeatedly, and records requests."""

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, list[tuple[int, Any]]] = {"GET /api/v1": [(200, RESOURCES)]}
        self.heard: list[tuple[str, Any, str | None]] = []
        self.connections: list[socket.socket] = []
        self.authority = Authority()
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_bytes(self.authority.pem)
        self.authority.server(LOOPBACK).write(folder, "server")
        self.port = free_port()

    @property
    def rest(self) -> Rest:
        return Rest(f"https://{LOOPBACK}:{self.port}", self.authority.pem, "secret")


class Handler(http.server.BaseHTTPRequestHandler):
    """Handler that returns the server's next response for each request of a connection."""

    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.script.connections.append(self.connection)  # type: ignore[attr-defined]

    def answer(self) -> None:
        script: Script = self.server.script  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = f"{self.command} {self.path}"
        script.heard.append((request, json.loads(body) if body else None, self.headers["Authorization"]))
        queue = script.answers[request]
        status, answer = queue.pop(0) if len(queue) > 1 else queue[0]
        content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = answer  # noqa: N815 - the names are http.server's

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    script = Script(tmp_path)
    server = http.server.ThreadingHTTPServer((LOOPBACK, script.port), Handler)
    server.script = script  # type: ignore[attr-defined]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield script
    server.shutdown()
    server.server_close()
    thread.join()


def test_requests_carry_the_token_and_answers_are_decoded(script: Script) -> None:
    script.answers["GET /api/v1/nodes"] = [(200, {"items": []})]
    assert script.rest.get("/api/v1/nodes") == {"items": []}
    assert script.heard == [("GET /api/v1/nodes", None, "Bearer secret")]


def test_a_connection_is_kept_until_the_server_hangs_up(script: Script) -> None:
    rest = script.rest
    script.answers["GET /readyz"] = [(200, "ok")]
    assert (rest.get("/readyz"), rest.get("/readyz"), len(script.connections)) == ("ok", "ok", 1)

    script.connections[0].shutdown(socket.SHUT_RDWR)

    assert (rest.get("/readyz"), len(script.connections)) == ("ok", 2)
    rest.close()
    assert (rest.get("/readyz"), len(script.connections)) == ("ok", 3)


def test_threads_do_not_share_a_connection_at_once(script: Script) -> None:
    rest = script.rest
    script.answers["GET /readyz"] = [(200, "ok")]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: rest.get("/readyz"), range(40))) == ["ok"] * 40
    assert 1 <= len(script.connections) <= 4


def test_an_answer_that_is_no_json_is_text(script: Script) -> None:
    script.answers["GET /readyz"] = [(200, "ok")]
    assert script.rest.get("/readyz") == "ok"


def test_a_refusal_carries_the_servers_reason_and_message(script: Script) -> None:
    script.answers["GET /api/v1/nodes/n1"] = [(404, {"reason": "NotFound", "message": 'nodes "n1" not found'})]
    with pytest.raises(RestError, match='^GET /api/v1/nodes/n1: 404 NotFound: nodes "n1" not found$') as raised:
        script.rest.get("/api/v1/nodes/n1")
    assert (raised.value.status, raised.value.reason) == (404, "NotFound")


def test_a_new_kind_with_starting_storage_is_retried(script: Script) -> None:
    script.answers["GET /things"] = [(429, {"message": STARTING}), (429, {"message": STARTING}), (200, {"items": []})]
    assert script.rest.get("/things") == {"items": []}


def test_any_other_429_is_an_answer(script: Script) -> None:
    script.answers["GET /evict"] = [(429, {"reason": "TooManyRequests", "message": "the budget"})]
    with pytest.raises(RestError, match="the budget"):
        script.rest.get("/evict")
    assert len(script.heard) == 1


def test_the_status_of_an_unreachable_server_is_zero(script: Script) -> None:
    script.answers["GET /readyz"] = [(500, "no")]
    assert script.rest.status("/readyz") == 500
    assert Rest(f"https://{LOOPBACK}:{free_port()}", script.authority.pem, "secret").status("/readyz") == 0


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (NODE, "/api/v1/nodes"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "/api/v1/namespaces/default/configmaps"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "a"}},
            "/api/v1/namespaces/a/configmaps",
        ),
    ],
    ids=["cluster", "default namespace", "namespace"],
)
def test_an_object_finds_its_collection_by_discovery(script: Script, obj: dict[str, Any], path: str) -> None:
    assert script.rest.collection(obj) == path


def test_an_existing_object_is_replaced_at_its_version(script: Script) -> None:
    script.answers["POST /api/v1/nodes"] = [(409, {"reason": "AlreadyExists", "message": "it exists"})]
    script.answers["GET /api/v1/nodes/n1"] = [(200, {"metadata": {"resourceVersion": "7"}})]
    script.answers["PUT /api/v1/nodes/n1"] = [(200, {})]
    script.rest.replace_or_create(NODE)
    assert script.heard[-1][1] == {**NODE, "metadata": {"name": "n1", "resourceVersion": "7"}}


def test_another_refusal_of_a_creation_does_not_mean_that_the_object_exists(script: Script) -> None:
    script.answers["POST /api/v1/nodes"] = [(422, {"reason": "Invalid", "message": "bad name"})]
    with pytest.raises(RestError, match="bad name"):
        script.rest.replace_or_create(NODE)


def test_a_probe_believes_only_its_own_authority(script: Script, tmp_path: Path) -> None:
    script.answers["GET /readyz"] = [(200, "ok")]
    stranger = tmp_path / "stranger.crt"
    stranger.write_bytes(Authority().pem)
    assert is_healthy_tls(script.port, "/readyz", script.ca_file)
    assert not is_healthy_tls(script.port, "/readyz", stranger)


def test_a_probe_of_an_authority_that_was_replaced_believes_the_new_one(script: Script, tmp_path: Path) -> None:
    script.answers["GET /readyz"] = [(200, "ok")]
    file = tmp_path / "file.crt"
    file.write_bytes(Authority().pem)
    assert not is_healthy_tls(script.port, "/readyz", file)
    file.write_bytes(script.authority.pem)
    assert is_healthy_tls(script.port, "/readyz", file)


def test_a_probe_of_a_closed_port_fails() -> None:
    port = free_port()
    assert not is_healthy(port, "/healthz")
    assert post(port, "/members", {}) == {}
