"""The label keys that pools may have are exactly those that NodeRestriction lets a node register with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodeyard.capabilities.pools.validation.node_keys import is_synced_in_place, label_refusal, taint_refusal
from nodeyard.testing import ControlPlane
from nodeyard.testing.session import Response, Session

pytestmark = pytest.mark.real

NODE = "pool-node-1"
JOINING = (
    "workload-type",
    "nvidia.com/gpu",
    "lattice.dev/tier",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/anything",
    "sub.node.kubernetes.io/anything",
    "kubelet.kubernetes.io/anything",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "x-k8s.io/a",
)
FORBIDDEN = (
    "kubernetes.io/role",
    "foo.kubernetes.io/a",
    "k8s.io/a",
    "foo.k8s.io/a",
    "topology.kubernetes.io/rack",
    "sub.node-role.kubernetes.io/a",
)
SYNCED = (
    "node-role.kubernetes.io/worker",
    "node-restriction.kubernetes.io/team",
    "a.node-restriction.kubernetes.io/team",
)


@pytest.fixture(scope="module")
def kubelet() -> Iterator[Session]:
    """Client with the node's identity."""
    enabled = {"kube-apiserver": ["--enable-admission-plugins=NodeRestriction"]}
    tokens = {"node-token": (f"system:node:{NODE}", ["system:nodes"])}
    with ControlPlane(arguments=enabled, tokens=tokens) as plane:
        yield Session(plane.url, plane.authority.pem, "node-token")


def register(kubelet: Session, *, labels: dict[str, str] | None = None, taints: list[dict[str, str]] | None = None):
    metadata = {"name": NODE, "labels": labels or {}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints or []}}
    return kubelet.post("/api/v1/nodes", node, query={"dryRun": "All"})


def is_forbidden(answer: Response, key: str) -> bool:
    return answer.status == 403 and answer.message.endswith(f"is not allowed to set the following labels: {key}")


@pytest.mark.parametrize("key", JOINING)
def test_a_label_passed_to_the_kubelet_lets_the_node_join(kubelet, key):
    assert (label_refusal(key), is_synced_in_place(key)) == ("", False)
    assert register(kubelet, labels={key: "v"}).status == 201


@pytest.mark.parametrize("key", FORBIDDEN)
def test_a_label_that_we_refuse_would_keep_the_node_out(kubelet, key):
    assert label_refusal(key)
    assert is_forbidden(register(kubelet, labels={key: "v"}), key)


@pytest.mark.parametrize("key", SYNCED)
def test_a_label_that_the_node_may_not_set_itself_is_left_to_cluster_api(kubelet, key):
    assert (label_refusal(key), is_synced_in_place(key)) == ("", True)
    assert is_forbidden(register(kubelet, labels={key: "v"}), key)


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "node.cluster.x-k8s.io/mine", "node.kubernetes.io/out-of-service"])
def test_a_node_may_join_with_its_taints(kubelet, key):
    assert taint_refusal(key) == ""
    assert register(kubelet, taints=[{"key": key, "effect": "NoSchedule"}]).status == 201
