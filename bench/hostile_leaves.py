"""Memory of the operator while leaf clusters flood it.

    python -m bench.hostile_leaves [--leaves 4] [--seconds 30] [--mode watch|list|malformed]
        [--memory 1024]

The operator runs in a process of its own on an embedded server. Each leaf answers like an API server, then floods:
`watch` sends endless new nodes and pods in watches, `list` endless pages, `malformed` objects that do not decode.
`--memory` is the container limit that the operator sees, in MiB. Prints the operator's resident memory every second,
and the peak.
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nodeyard.capabilities.clustertree import names
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.wait import until

HOST = "127.0.0.1"
CLUSTERS = f"/apis/{names.API_VERSION}/{names.PLURAL}"
OPERATOR = """
from nodeyard.runtime.remote import client
client.memory_limit = lambda: {}
from nodeyard.cli import main
main()
"""
CHUNK = 20
"""Events per write, because the reader is measured."""
RESOURCES: list[dict[str, Any]] = [
    {"name": "nodes", "kind": "Node"},
    {"name": "pods", "kind": "Pod", "namespaced": True},
]
BOOKMARK = {
    "type": "BOOKMARK",
    "object": {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}},
}


class Leaf(BaseHTTPRequestHandler):
    mode = "watch"
    uid = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        is_list = path in ("/api/v1/nodes", "/api/v1/pods")
        if is_list and "watch=true" in query:
            self._watch(is_streamed="sendInitialEvents=true" in query)
        elif is_list:
            number = int(time.monotonic() * 1e6)
            items = [self._object(number + each) for each in range(100)] if self.mode == "list" else []
            self._answer({"metadata": {"resourceVersion": "9", "continue": "x" if items else ""}, "items": items})
        else:
            self._answer(self._answers().get(path, {}))

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _answers(self) -> dict[str, Any]:
        resources = [{**each, "verbs": ["get", "list", "watch"]} for each in RESOURCES]
        return {
            "/version": {"gitVersion": "v1.36.4"},
            "/api/v1/namespaces/kube-system": {"metadata": {"name": "kube-system", "uid": self.uid}},
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": []},
            "/api/v1": {"groupVersion": "v1", "resources": resources},
        }

    def _answer(self, body: Any, status: int = 200) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _object(self, number: int) -> dict[str, Any]:
        labels: Any = 7 if self.mode == "malformed" else {f"{index}": f"{number}" for index in range(200)}
        metadata = {"name": f"flood-{number}", "namespace": "default", "uid": f"{number}", "labels": labels}
        return {"metadata": {**metadata, "resourceVersion": f"{number}"}}

    def _watch(self, *, is_streamed: bool) -> None:
        if is_streamed and self.mode == "list":
            self._answer({"kind": "Status", "code": 422, "reason": "Invalid"}, 422)
            return
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        number = 100
        try:
            self.wfile.write(json.dumps(BOOKMARK).encode() + b"\n")
            while True:
                number += CHUNK
                events = ({"type": "ADDED", "object": self._object(number + each)} for each in range(CHUNK))
                self.wfile.write(b"".join(json.dumps(event).encode() + b"\n" for event in events))
        except OSError:
            return


def serve(uid: str, mode: str, port: Any) -> None:
    server = ThreadingHTTPServer((HOST, 0), type("Handler", (Leaf,), {"uid": uid, "mode": mode}))
    server.daemon_threads = True
    port.send(server.server_port)
    server.serve_forever()


def kubeconfig(port: int) -> str:
    cluster = {"name": "c", "cluster": {"server": f"http://{HOST}:{port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    users = [{"name": "c", "user": {"token": "t"}}]
    return json.dumps({"current-context": "c", "clusters": [cluster], "contexts": [context], "users": users})


def resident(pid: int) -> float:
    """Return the resident memory in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


def main(leaves: int, seconds: int, mode: str, memory: int) -> None:
    children = []
    for number in range(leaves):
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.Process(target=serve, args=(f"leaf-{number}", mode, theirs), daemon=True)
        child.start()
        children.append((child, ours.recv()))
    with EmbeddedServer() as server:
        command = ["run", "--kubeconfig", str(server.kubeconfig), "--capabilities", "clustertree", "--install-crds"]
        quiet = ["--health-bind", "0", "--metrics-bind", "0", "--log-level", "warning"]
        operator = subprocess.Popen([sys.executable, "-c", OPERATOR.format(memory << 20), *command, *quiet])
        try:
            until(lambda: server.rest.exists(CLUSTERS), "the operator installs its CRDs", timeout=60)
            time.sleep(3)
            before = resident(operator.pid)
            for number, (_, port) in enumerate(children):
                text = base64.b64encode(kubeconfig(port).encode()).decode()
                spec = {"kubeconfig": text, "clusterTreeOptions": {"leafModels": []}}
                kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
                server.rest.create({**kind, "metadata": {"name": f"leaf-{number}"}, "spec": spec})
            sizes = []
            for second in range(seconds):
                time.sleep(1)
                sizes.append(resident(operator.pid))
                print(f"{second + 1:3d} s  {sizes[-1]:7.0f} MiB", flush=True)
            print(f"before {before:.0f} MiB, peak {max(sizes):.0f} MiB, end {sizes[-1]:.0f} MiB")
            for number in range(leaves):
                found = server.rest.get(f"{CLUSTERS}/leaf-{number}")
                conditions = found.get("status", {}).get("conditions", [])
                print(number, [(each["type"], each["status"], each["reason"]) for each in conditions])
        finally:
            operator.kill()
            operator.wait()
    for child, _ in children:
        child.kill()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--leaves", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--mode", choices=("watch", "list", "malformed"), default="watch")
    parser.add_argument("--memory", type=int, default=1024)
    given = parser.parse_args()
    main(given.leaves, given.seconds, given.mode, given.memory)
