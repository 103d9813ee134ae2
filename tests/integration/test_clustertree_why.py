"""Events, status, `plan` and `why` about leaves, mirrored nodes and unacknowledged pods."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from datetime import timedelta

import pytest
from tests.builders.tree_env import node_model, selector_model

from nodeyard.capabilities.clustertree import names
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import SystemClock
from nodeyard.testing.faults import FaultProxy, Status

PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()"]


def ago(seconds):
    return format_rfc3339(SystemClock().now() - timedelta(seconds=seconds))


@pytest.fixture
def nodeyard(api):
    def run(*arguments, exits=(0,)):
        command = [*PROGRAM, *arguments, "--kubeconfig", str(api.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode in exits, done.stdout + done.stderr
        return done.stdout

    return run


def test_an_unacknowledged_pod_is_reported(tree, tree_operator, nodeyard):
    tree.leaf.node("n1")
    east = tree.cluster("east")
    node = f"kosmos-{east}"
    tree.wait_for_mirrors(east, node)

    early = tree.pod("early", node, since=ago(20))
    late = tree.pod("late", node, since=ago(56))

    said = tree.wait_for_event(late, "PodUnacknowledged")
    assert "Nodeyard mirrors nodes and does not move pods" in said
    tree.wait_until(lambda: tree.get_cluster(east)["status"].get("unacknowledgedPods") == 1, "it is counted")
    assert tree.events(early) == []
    answer = " ".join(nodeyard("why", f"pod/{late}", "-n", "default").split())
    assert f"has been bound to {node}" in answer
    assert "is not acknowledged" in answer

    tree.acknowledge(late, ago(0))
    tree.wait_until(lambda: not tree.get_cluster(east)["status"].get("unacknowledgedPods"), "nobody waits any more")


def test_why_names_the_leaf_nodes_and_their_contributions(tree, tree_operator, nodeyard):
    gpu = tree.leaf.node("gpu", cpu="8", labels={"pool": "gpu"})
    closed = tree.leaf.node("closed", cpu="8", labels={"pool": "gpu"}, unschedulable=True)
    other = tree.leaf.node("other")
    east = tree.cluster("east", selector_model("gpu"), node_model(other))
    tree.wait_for_allocatable("kosmos-gpu-0", cpu="8")
    tree.wait_for_mirrors(east, "kosmos-gpu-0", other)

    node = nodeyard("why", "node/kosmos-gpu-0")
    assert gpu in node
    assert closed in node
    assert "Cordoned in the leaf" in node
    cluster = nodeyard("why", f"{names.KIND}.{names.GROUP}/{east}")
    assert "appears as" in " ".join(cluster.split())
    assert nodeyard("why", f"leaf/{east}") == cluster


def test_why_of_a_leaf_reports_the_operators_contact_and_not_its_own(tree, tree_operator, nodeyard, leaf_servers):
    server = leaf_servers[0]
    with FaultProxy(server.url, server.authority.pem, server.admin_token) as wire:
        tree.leaf.node("n1")
        east = tree.cluster("east", kubeconfig=wire.kubeconfig)
        tree.wait_for_condition(east, "Ready", "True")
        # The requests of the lease loop: the CLI, which only lists and watches, finds no fault.
        wire.add(Status(500), path="/readyz")
        message = tree.wait_for_condition(east, "Reachable", "False", "LeafUnreachable")

        answer = nodeyard("why", f"leaf/{east}")

        assert message[:60] in " ".join(answer.split())
        assert "recorded by the operator" in " ".join(answer.split())


def test_a_plan_shows_what_a_file_would_lead_to_and_no_secret(tree, nodeyard, tmp_path):
    tree.leaf.node("n1", cpu="2")
    kubeconfig = tree.leaf.server.kubeconfig.read_bytes()
    east = tree.unique_name("east")
    spec = {"kubeconfig": base64.b64encode(kubeconfig).decode()}
    kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({**kind, "metadata": {"name": east}, "spec": spec}))

    shown = nodeyard("plan", "-f", str(path), exits=(2,))

    assert f"Create Node kosmos-{east}" in shown
    assert tree.leaf.server.admin_token not in shown
    assert spec["kubeconfig"] not in shown
    assert tree.mirrors(east) == []


def test_a_right_kosmos_object_applies_unchanged(tree, kubectl):
    """The fields of Kosmos' own examples, checked by a server-side dry run against our CRD."""
    manifest = """
apiVersion: kosmos.io/v1alpha1
kind: Cluster
metadata:
  name: cluster-node
spec:
  imageRepository: ghcr.io/kosmos-io
  kubeconfig: Zm9v
  namespace: kosmos-system
  clusterLinkOptions:
    enable: true
    cni: calico
    networkType: gateway
    ipFamily: all
    defaultNICName: "*"
    useIPPool: false
    globalCIDRsMap: {"10.222.0.0/16": "210.222.0.0/16"}
    nicNodeNames: [{interfaceName: eth1, nodeName: [node1]}]
  clusterTreeOptions:
    enable: true
    leafModels:
      - leafNodeName: gpu
        labels: {test-leaf-party-mode: "yes"}
        taints: [{effect: NoSchedule, key: test-node/leaf-mode, value: "true"}]
        nodeSelector: {labelSelector: {matchLabels: {leaf-party: one}}}
      - leafNodeName: worker
        nodeSelector: {nodeName: worker}
"""
    done = kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=manifest)
    assert "cluster-node" in done.stdout
    explained = kubectl("explain", "clusters.kosmos.io.spec.clusterTreeOptions.leafModels").stdout
    assert "nodeSelector" in explained
    refused = kubectl("apply", "-f", "-", stdin=manifest.replace("NoSchedule", "Never"), check=False)
    assert "NoSchedule" in refused.stderr
