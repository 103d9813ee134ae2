"""A bundle of a large fleet: 10,000 nodes with 30,000 pods in under a minute and 50 MB.

The time is that of the processor, of the server in the same process as well: other work on the machine does not count.
"""

from __future__ import annotations

import time

import msgspec
import pytest

from nodeyard.apiserver.server import Server
from nodeyard.app.capabilities import choose
from nodeyard.app.gather import gather, write
from nodeyard.bundle.model import GVR, ClusterState, Objects, ServedResource
from nodeyard.bundle.reader import read_bundle
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.client.api import Client
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.crds import install
from nodeyard.sim.embedded import connect
from nodeyard.sim.nodes import spare_node

NODES, PODS = 10_000, 30_000
SECONDS, MEGABYTES = 60.0, 50.0
MANAGED = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-19T12:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:tier": {}}}, "f:spec": {"f:taints": {}}},
    }
    for manager in ("kubelet", "kube-controller-manager", "kubectl")
]


def node(number):
    found = spare_node(f"node-{number:05}", SystemClock().now(), zone=f"zone-{number % 3}")
    images = [
        {"names": [f"registry.example/team/image-{each}@sha256:{each:064x}", f"registry.example/team/image-{each}:v1"],
         "sizeBytes": 12345 + each}
        for each in range(20)
    ]  # fmt: skip
    found["metadata"]["managedFields"] = MANAGED
    found["metadata"]["uid"] = f"{number:08}-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
    found["status"]["images"] = images
    return found


def pod(number):
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-11-19T12:00:00Z"}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{number:05}",
            "namespace": f"team-{number % 50}",
            "uid": f"{number:08}-bbbb-4bbb-8bbb-bbbbbbbbbbbb",
            "labels": {"app": "web", "tier": f"t{number % 7}"},
            "creationTimestamp": "2026-11-19T12:00:00Z",
            "managedFields": MANAGED,
        },
        "spec": {
            "nodeName": f"node-{number % NODES:05}",
            "containers": [
                {
                    "name": "web",
                    "image": "registry.example/team/web:v1",
                    "args": ["--listen=:8080", f"--shard={number}"],
                    "env": [{"name": f"VALUE_{each}", "value": f"value {each} of {number}"} for each in range(8)],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                }
            ],
        },
        "status": {"phase": "Running", "conditions": conditions, "podIP": f"10.{number // 65536}.{number % 256}.7"},
    }


def encoded(objects):
    return Objects([msgspec.json.encode(each) for each in objects])


def served(resource, kind, *, namespaced):
    return ServedResource("", "v1", resource, kind, namespaced, kind.lower(), verbs=("get", "list", "watch"))


@pytest.mark.timeout(600)
async def test_a_bundle_of_ten_thousand_nodes(tmp_path):
    resources = (served("nodes", "Node", namespaced=False), served("pods", "Pod", namespaced=True))
    objects = {
        GVR("", "v1", "nodes"): encoded(map(node, range(NODES))),
        GVR("", "v1", "pods"): encoded(map(pod, range(PODS))),
    }
    server = Server(seed=1)
    server.load(ClusterState("", resources, objects))
    await server.start(())
    client: Client = connect(server)
    await install(client, choose(["spares"]), SystemClock())

    begun = time.process_time()
    gathered = await gather(client, (SPARES,))
    write(tmp_path / "bundle.tgz", gathered)
    seconds = time.process_time() - begun
    await server.stop()

    size = (tmp_path / "bundle.tgz").stat().st_size / 1e6
    print(f"{seconds:.1f} s, {size:.1f} MB")
    assert seconds < SECONDS
    assert size < MEGABYTES
    found = read_bundle(tmp_path / "bundle.tgz")
    counts = {gvr.resource: len(each) for gvr, each in found.cluster.objects.items()}
    assert (counts["nodes"], counts["pods"]) == (NODES, PODS)
    assert gathered.documents["hidden"] == []
