"""Labels, taints and addresses that cross from a leaf node to its mirror."""

from pathlib import Path

import pytest
from tests.builders.memory import kept_bytes

from nodeyard.capabilities.clustertree.planning import mirror_policy
from nodeyard.capabilities.clustertree.snapshot import NodeAddress
from nodeyard.kube.objects import Taint

from ....builders.tree_state import leaf_node, node_model, settled_state

PAGE = Path(__file__).parents[4] / "docs" / "clustertree.md"


@pytest.mark.parametrize(
    "key",
    [
        "node-restriction.kubernetes.io/tenant",
        "example.node-restriction.kubernetes.io/tenant",
        "node-role.kubernetes.io/control-plane",
        "nyallocator.cybozu.io/node-template",
        "nodeyard.dev/anything",
        "lattice.dev/pool",
        "kosmos.io/exclude",
        "kosmos-io/pod",
        "apps.cozystack.io/affinity-class",
        "node.cluster.x-k8s.io/owner",
        "kubernetes.io/anything",
        "example.k8s.io/anything",
    ],
)
def test_a_label_that_no_kubelet_may_set_or_by_which_a_node_is_owned_does_not_cross(key):
    labels = settled_state(node_model("n1"), nodes=[leaf_node("n1", **{key: "forged"})]).roots["n1"].metadata.labels

    assert labels.get(key) != "forged"


@pytest.mark.parametrize(
    "key",
    [
        "disk",
        "example.com/rack",
        "topology.kubernetes.io/zone",
        "node.kubernetes.io/instance-type",
        "feature.node.kubernetes.io/cpu-model.id",
        "topology.ebs.csi.aws.com/zone",
        "notkubernetes.io/x",
    ],
)
def test_a_label_that_a_kubelet_may_set_crosses(key):
    labels = settled_state(node_model("n1"), nodes=[leaf_node("n1", **{key: "v"})]).roots["n1"].metadata.labels

    assert labels[key] == "v"


@pytest.mark.parametrize(
    ("key", "crosses", "cordons"),
    [
        ("nvidia.com/gpu", True, False),
        ("node-role.kubernetes.io/control-plane", True, False),
        ("node.kubernetes.io/unreachable", False, False),
        ("node.cybozu.io/spare", False, True),
        ("node-restriction.kubernetes.io/tenant", False, True),
        ("node.cloudprovider.kubernetes.io/uninitialized", False, True),
    ],
)
def test_a_taint_crosses_or_cordons_or_is_left_to_the_root(key, crosses, cordons):
    node = settled_state(node_model("n1"), nodes=[leaf_node("n1", taints=[f"{key}=x:NoSchedule"])]).roots["n1"]

    assert (key in {each.key for each in node.spec.taints}) is crosses
    assert node.spec.unschedulable is cordons


def test_a_taint_that_only_prefers_cordons_nothing():
    assert not mirror_policy.is_cordon(Taint(key="node.cybozu.io/spare", effect="PreferNoSchedule"))


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
        "fe80::1",
        "fe80::1%eth0",
        "127.0.0.1",
        "::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "::ffff:169.254.169.254",
        "::ffff:127.0.0.1",
        "2002:a9fe:a9fe::1",
        "64:ff9b::a9fe:a9fe",
        "255.255.255.255",
        "not an address",
        "",
    ],
)
def test_an_address_that_means_another_machine_in_the_root_does_not_cross(address):
    assert not mirror_policy.may_cross_address(NodeAddress(type="InternalIP", address=address))


@pytest.mark.parametrize(
    "name", ["localhost", "x.localhost", "127.0.0.1", "2852039166", "0xa9fea9fe", "127.1", "0x7f.0x1", "a b", ""]
)
def test_a_host_name_that_a_resolver_reads_as_an_address_or_as_itself_does_not_cross(name):
    assert not mirror_policy.may_cross_address(NodeAddress(type="Hostname", address=name))


@pytest.mark.parametrize(
    ("type", "address"),
    [("InternalIP", "10.1.2.3"), ("InternalIP", "fd00::7"), ("ExternalIP", "8.8.8.8"), ("Hostname", "N1.leaf")],
)
def test_any_other_address_crosses(type, address):
    assert mirror_policy.may_cross_address(NodeAddress(type=type, address=address))


def test_an_address_of_an_unknown_type_does_not_cross():
    assert not mirror_policy.may_cross_address(NodeAddress(type="Other", address="10.1.2.3"))


def test_the_page_shows_the_table():
    assert mirror_policy.table() in PAGE.read_text()


def test_keys_that_are_too_long_for_any_server_are_not_remembered():
    """A leaf that renames its labels must not fill the memory of caches."""
    keys = (f"{number:0100000d}" for number in range(100))

    assert kept_bytes(lambda: [mirror_policy.may_cross_label(key) for key in keys]) < 1_000_000
