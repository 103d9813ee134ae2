"""An untrusted API server of a leaf: it serves invalid objects, floods watches, and puts a secret into every error.

with HostileLeaf() as leaf:
    leaf.pods = [...]          objects of its lists and watches, even invalid ones
    leaf.flood = True          its watch of nodes sends new nodes without end
    leaf.kinds = 100_000       its discovery lists as many kinds
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.builders.remote_clusters import token_kubeconfig

SECRET = "s3cret-of-the-leaf"
"""Part of the body of every failed response."""
BOOKMARK = {
    "type": "BOOKMARK",
    "object": {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}},
}


class HostileLeaf:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.pods: list[dict[str, Any]] = []
        self.flood = False
        self.kinds = 0
        self.failing: set[str] = set()
        """Paths that return 500."""
        self.uid = "hostile"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"leaf": self}))
        self._server.daemon_threads = True
        self.is_closed = threading.Event()

    @property
    def kubeconfig(self) -> str:
        return token_kubeconfig(f"http://127.0.0.1:{self._server.server_port}")

    def __enter__(self) -> HostileLeaf:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    leaf: HostileLeaf
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        listed = {"/api/v1/nodes": self.leaf.nodes, "/api/v1/pods": self.leaf.pods}
        if path in self.leaf.failing or (path not in listed and path not in self._answers()):
            self._answer(500, {"kind": "Status", "code": 500, "reason": SECRET, "message": SECRET})
        elif path not in listed:
            self._answer(200, self._answers()[path])
        elif "watch=true" in query:
            self._watch(listed[path], is_flood=path.endswith("nodes"))
        else:
            self._answer(200, {"metadata": {"resourceVersion": "9"}, "items": listed[path]})

    def log_message(self, *_: object) -> None:
        pass

    def _answers(self) -> dict[str, Any]:
        resources = [{"name": "nodes", "kind": "Node"}, {"name": "pods", "kind": "Pod", "namespaced": True}]
        resources += [{"name": f"x{each}", "kind": "X", "namespaced": True} for each in range(self.leaf.kinds)]
        verbs = {"verbs": ["get", "list", "watch"]}
        return {
            "/readyz": "ok",
            "/version": {"gitVersion": "v1.36.4"},
            "/api/v1/namespaces/kube-system": {"metadata": {"name": "kube-system", "uid": self.leaf.uid}},
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": []},
            "/api/v1": {"groupVersion": "v1", "resources": [{**each, **verbs} for each in resources]},
        }

    def _answer(self, status: int, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _watch(self, objects: list[dict[str, Any]], *, is_flood: bool) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        number = 0
        try:
            for event in [{"type": "ADDED", "object": each} for each in objects] + [BOOKMARK]:
                self._line(event)
            while not self.leaf.is_closed.wait(0 if is_flood and self.leaf.flood else 0.05):
                if is_flood and self.leaf.flood:
                    number += 1
                    labels = {f"{index}": "x" for index in range(200)}
                    metadata = {"name": f"flood-{number}", "resourceVersion": f"{number + 10}", "labels": labels}
                    self._line({"type": "ADDED", "object": {"metadata": metadata}})
        except OSError:
            return

    def _line(self, event: dict[str, Any]) -> None:
        self.wfile.write(json.dumps(event).encode() + b"\n")
