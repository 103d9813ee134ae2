"""Applies examples/04-clustertree by its README and checks the results in it."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest
from tests.builders.tree_env import CLUSTERS, PATIENCE, with_fast_lease_loop

from nodeyard.capabilities.clustertree import names
from nodeyard.testing.session import MERGE
from nodeyard.testing.wait import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "04-clustertree"
LEAVES = ("east", "west")
NODES = "/api/v1/nodes"
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": None}


@pytest.fixture
def leaves(leaf_servers, kubectl):
    """Both leaves with the objects of the example and healthy kubelets."""
    servers = dict(zip(LEAVES, leaf_servers, strict=True))
    for name, server in servers.items():
        folder = EXAMPLE / "clusters" / name
        kubectl("apply", "--server-side", "-f", str(folder), kubeconfig=server.kubeconfig)
        for node in server.rest.get(NODES)["items"]:
            path = f"{NODES}/{node['metadata']['name']}"
            server.rest.call("PATCH", f"{path}/status", {"status": {"conditions": [READY]}}, content_type=MERGE)
    yield servers
    for name, server in servers.items():
        folder = EXAMPLE / "clusters" / name
        kubectl("delete", "--force", "--grace-period=0", "-f", str(folder), kubeconfig=server.kubeconfig)


@pytest.fixture
def applied(api, cluster_kind, leaves, kubectl, operator):
    """The root with a running operator and filled Secrets."""
    operator(with_fast_lease_loop())
    kubectl("apply", "-f", str(EXAMPLE))
    for name, server in leaves.items():
        content = b64encode(server.kubeconfig.read_bytes()).decode()
        patch = json.dumps({"data": {"kubeconfig": content}})
        kubectl("-n", "leaves", "patch", "secret", f"{name}-kubeconfig", "-p", patch)
    yield
    kubectl("delete", "-f", str(EXAMPLE), "--ignore-not-found", timeout=120.0)


def rows(kubectl):
    return [line.split()[:-1] for line in kubectl("get", "kcl").stdout.splitlines()[1:]]


@pytest.mark.timeout(240)
def test_the_example_works_as_its_readme_describes(applied, api, leaves, kubectl):
    shown = [["east", "1", "3", "True", "True", "True"], ["west", "2", "3", "True", "True", "True"]]
    until(lambda: rows(kubectl) == shown, "as the README shows them", PATIENCE)

    nodes = {each["metadata"]["name"]: each for each in api.rest.get(f"{NODES}?labelSelector=kosmos.io/node")["items"]}
    assert {"kosmos-east", "west-edge-0", "kosmos-gpu-1"} <= nodes.keys()
    east = nodes["kosmos-east"]["status"]["allocatable"]
    assert (east["cpu"], east["memory"], east["pods"]) == ("19", "80Gi", "327")
    gpu = nodes["kosmos-gpu-1"]
    assert (gpu["status"]["allocatable"]["cpu"], gpu["status"]["allocatable"]["nvidia.com/gpu"]) == ("28", "7")
    assert gpu["metadata"]["labels"]["accelerator"] == "nvidia"
    assert {each["key"] for each in gpu["spec"]["taints"]} >= {"nvidia.com/gpu", "kosmos.io/node"}
    largest = json.loads(gpu["metadata"]["annotations"][names.LARGEST_FREE])
    assert (largest["cpu"], largest["nvidia.com/gpu"]) == ("16", "4")
    edge = nodes["west-edge-0"]
    assert edge["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"

    kubectl("cordon", "west-edge-0", kubeconfig=leaves["west"].kubeconfig)
    until(lambda: api.rest.get(f"{NODES}/west-edge-0")["spec"].get("unschedulable"), "it is cordoned too", PATIENCE)
    off = '{"spec":{"clusterTreeOptions":{"enable":false}}}'
    kubectl("patch", "kcl", "east", "--type", "merge", "-p", off)
    until(lambda: "kosmos-east" not in kubectl("get", "nodes", "-o", "name").stdout, "its node is gone", PATIENCE)
    assert api.rest.get(f"{CLUSTERS}/west")["status"]["nodes"] == 2
