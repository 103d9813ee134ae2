"""Label and taint keys that would keep nodes from joining are rejected with a remedy."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.pools import SEED_POOLS, pool

from nodeyard.capabilities.pools.types import WorkerPool
from nodeyard.capabilities.pools.validation.node_keys import (
    NODE_LABELS_MAX,
    faults,
    is_synced_in_place,
    label_refusal,
    taint_refusal,
)

ALLOWED_LABELS = (
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
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "notkubernetes.io/a",
    "x-k8s.io/a",
    "kubernetes.io",
)
SYNCED_LABELS = (
    "node-role.kubernetes.io/worker",
    "node-restriction.kubernetes.io/team",
    "a.node-restriction.kubernetes.io/team",
    "node.cluster.x-k8s.io/tier",
    "a.node.cluster.x-k8s.io/tier",
)
REFUSED_LABELS = (
    "kubernetes.io/role",
    "foo.kubernetes.io/a",
    "k8s.io/a",
    "foo.k8s.io/a",
    "topology.kubernetes.io/rack",
    "topology.k8s.aws.k8s.io/zone",
    "cluster.x-k8s.io/cluster-name",
    "machine.cluster.x-k8s.io/a",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "sub.node-role.kubernetes.io/a",
    "lattice.dev/pool",
)


def of(**given):
    return faults("gpu", msgspec.convert(pool(**given), WorkerPool))


@pytest.mark.parametrize("key", [*ALLOWED_LABELS, *SYNCED_LABELS])
def test_a_key_that_reaches_nodes_is_fine(key):
    assert of(labels={key: "v"}) == []


@pytest.mark.parametrize("key", REFUSED_LABELS)
def test_a_key_that_would_keep_nodes_from_joining_is_named_with_a_way_out(key):
    (fault,) = of(labels={key: "v", "fine": "v"})

    assert (fault.field, fault.value) == ("spec.nodes.workerPools[gpu].labels", key)
    assert "remove it" in fault.message or "use " in fault.message
    assert str(fault) == f'spec.nodes.workerPools[gpu].labels: Invalid value: "{key}": {fault.message}'


def test_cluster_api_brings_its_own_labels_to_nodes_in_place_and_no_others():
    assert [key for key in ALLOWED_LABELS if is_synced_in_place(key)] == []
    assert [key for key in SYNCED_LABELS if not is_synced_in_place(key)] == []


@pytest.mark.parametrize("key", ["node-role.kubernetes.io", "node.cluster.x-k8s.io"])
def test_a_domain_that_stands_alone_counts_as_cluster_api_reads_it(key):
    assert is_synced_in_place(key)


@pytest.mark.parametrize(
    "key",
    [
        "sub.node-role.kubernetes.io/a",
        "mynode.cluster.x-k8s.io/a",
        "lattice.dev/node.cluster.x-k8s.io",
        "workload-type",
    ],
)
def test_a_domain_that_merely_resembles_a_synced_one_is_not_synced(key):
    assert not is_synced_in_place(key)


@pytest.mark.parametrize(
    "key",
    [
        "node.cluster.x-k8s.io/uninitialized",
        "node.cluster.x-k8s.io/outdated-revision",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/anything",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node-role.kubernetes.io/master",
        "node-role.kubernetes.io/control-plane",
    ],
)
def test_a_foreign_taint_is_refused(key):
    (fault,) = of(taints=[f"{key}:NoSchedule"])

    assert (fault.field, fault.value) == ("spec.nodes.workerPools[gpu].taints[0].key", key)
    assert "remove it" in fault.message or "use your own domain" in fault.message


@pytest.mark.parametrize(
    "key",
    [
        "dedicated",
        "nvidia.com/gpu",
        "node.kubernetes.io/out-of-service",
        "node.cluster.x-k8s.io/mine",
        "node-role.kubernetes.io/infra",
        "kubernetes.io/dedicated",
    ],
)
def test_a_taint_of_ones_own_is_fine(key):
    assert of(taints=[f"{key}=a:NoExecute"]) == []


def test_the_same_taint_twice_is_said_once():
    (fault,) = of(taints=["a=b:NoSchedule", "a=c:NoSchedule", "a:NoExecute"])

    assert (fault.field, fault.value) == ("spec.nodes.workerPools[gpu].taints", "a:NoSchedule")


def test_taints_admitted_by_an_older_schema_are_still_checked():
    labels = {"a b": "c", "d": "e!"}
    taint = {"key": "f g", "value": "!", "effect": "Sometimes"}
    found = faults("gpu", msgspec.convert({"replicas": 1, "labels": labels, "taints": [taint]}, WorkerPool))

    at = "spec.nodes.workerPools[gpu]"
    assert {(fault.field, fault.value) for fault in found} == {
        (f"{at}.labels", "a b"),
        (f"{at}.labels[d]", "e!"),
        (f"{at}.taints[0].key", "f g"),
        (f"{at}.taints[0].value", "!"),
        (f"{at}.taints[0].effect", "Sometimes"),
    }


def test_labels_fit_into_one_argument_of_the_kubelet():
    own = len("lattice.dev/pool=gpu")
    entries = {f"k{number:02}": "v" * 59 for number in range(15)}
    rest = NODE_LABELS_MAX - own - 15 * len(",k00=" + "v" * 59)

    assert of(labels={**entries, "z": "v" * (rest - len(",z="))}) == []
    (fault,) = of(labels={**entries, "z": "v" * (rest - len(",z=") + 1)})
    assert (fault.field, fault.value) == ("spec.nodes.workerPools[gpu].labels", "16 labels")
    assert "1025 bytes, and at most 1024 fit" in fault.message


def test_labels_that_cluster_api_brings_do_not_count_towards_the_argument():
    assert of(labels={f"node.cluster.x-k8s.io/k{number:02}": "v" * 63 for number in range(60)}) == []


@pytest.mark.parametrize("id", SEED_POOLS)
def test_the_pools_of_the_design_are_fine(id):
    assert faults(id, msgspec.convert(SEED_POOLS[id], WorkerPool)) == []


# a model of the kubelet and NodeRestriction, independent of our code

KUBELETS = {
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
}


def kubelet_starts_with(key: str) -> bool:
    domain, slash, _name = key.partition("/")
    if not slash or not f".{domain}".endswith((".kubernetes.io", ".k8s.io")):
        return True
    return key in KUBELETS or f".{domain}".endswith((".kubelet.kubernetes.io", ".node.kubernetes.io"))


parts = st.sampled_from(
    ["kubernetes", "k8s", "io", "node", "kubelet", "x-k8s", "cluster", "node-role", "node-restriction", "beta", "a"]
)
keys = st.builds(
    lambda domain, name: f"{'.'.join(domain)}/{name}" if domain else name,
    st.lists(parts, max_size=5),
    st.sampled_from(["os", "arch", "zone", "hostname", "a", "control-plane"]),
)


@given(keys | st.sampled_from(sorted(KUBELETS)))
def test_no_key_that_we_let_through_stops_a_kubelet(key):
    if label_refusal(key) == "" and not is_synced_in_place(key):
        assert kubelet_starts_with(key)


@given(keys | st.sampled_from(sorted(KUBELETS)))
def test_unclaimed_taints_that_a_kubelet_accepts_are_admitted(key):
    claimed = "cluster.x-k8s.io" in key or key in ("node-role.kubernetes.io/control-plane", "lattice.dev/pool")
    if kubelet_starts_with(key) and not claimed:
        assert label_refusal(key) == ""


@given(keys)
def test_a_taint_key_is_refused_only_where_somebody_claims_it(key):
    claimed = key.startswith(("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cluster.x-k8s.io/"))
    if taint_refusal(key):
        assert claimed or key == "node-role.kubernetes.io/control-plane"
