"""Life cycle of a Cluster: kubeconfig, enable, pause and deletion, in any state of the leaf."""

from __future__ import annotations

import pytest
from tests.builders import remote_clusters
from tests.builders.tree_env import node_model, selector_model

from nodeyard.capabilities.clustertree import names
from nodeyard.testing.faults import Drop, FaultProxy

READ = ["get", "list", "watch"]
pytestmark = pytest.mark.usefixtures("tree_operator")

RIGHTS = [
    {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": READ},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": READ},
    {"nonResourceURLs": ["/readyz", "/version"], "verbs": ["get"]},
]
"""The ClusterRole in docs/clustertree.md."""


@pytest.fixture
def wire(leaf_servers):
    """A proxy between the operator and the first leaf."""
    leaf = leaf_servers[0]
    with FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token) as proxy:
        yield proxy


def test_a_deleted_cluster_takes_its_nodes_and_leases_with_it(tree):
    n1 = tree.leaf.node("n1")
    east = tree.cluster("east", node_model(n1))
    tree.wait_for_renewal(n1)
    assert names.FINALIZER in tree.get_cluster(east)["metadata"]["finalizers"]

    tree.delete(east)

    tree.wait_until(lambda: tree.get_cluster(east) is None, "the Cluster is gone")
    tree.wait_until(lambda: tree.get_node(n1) is None and tree.lease(n1) is None, "its node and lease are gone")


def test_a_cluster_can_be_deleted_while_its_leaf_is_down(tree, wire):
    tree.leaf.node("n1")
    east = tree.cluster("east", kubeconfig=wire.kubeconfig)
    tree.wait_for_renewal(f"kosmos-{east}")
    wire.add(Drop())

    tree.delete(east)

    tree.wait_until(lambda: tree.get_cluster(east) is None, "the Cluster is gone")
    assert tree.mirrors(east) == []
    tree.wait_until(lambda: tree.lease(f"kosmos-{east}") is None, "its lease is gone")


def test_a_cluster_can_be_deleted_when_its_kubeconfig_is_broken(tree):
    tree.leaf.node("n1")
    east = tree.cluster("east")
    tree.wait_for_mirrors(east, f"kosmos-{east}")
    tree.secret(east, "no kubeconfig at all")
    tree.wait_for_condition(east, "Reachable", "False", "KubeconfigRefused")

    tree.delete(east)

    tree.wait_until(lambda: tree.get_cluster(east) is None, "the Cluster is gone")
    assert tree.mirrors(east) == []


def test_a_cluster_that_is_switched_off_has_no_nodes_until_it_is_on_again(tree):
    tree.leaf.node("n1", cpu="3")
    east = tree.cluster("east")
    tree.wait_for_mirrors(east, f"kosmos-{east}")

    tree.change(east, enable=False)
    tree.wait_for_mirrors(east)
    assert "enable" in tree.wait_for_condition(east, "Ready", "True", "TreeDisabled")
    tree.wait_until(lambda: not tree.get_cluster(east)["metadata"].get("finalizers"), "nothing holds the Cluster")

    tree.change(east, enable=True)
    tree.wait_for_allocatable(f"kosmos-{east}", cpu="3")


def test_the_root_itself_is_not_mirrored(tree):
    metadata = {"annotations": {names.CLUSTER_ROLE: names.ROOT}}
    root = tree.cluster("root", kubeconfig=tree.root.kubeconfig, metadata=metadata)

    tree.wait_for_condition(root, "Ready", "True", "IsRoot")

    assert tree.mirrors(root) == []


def test_a_kubeconfig_may_be_in_the_cluster_itself(tree):
    tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east", inline=True)

    tree.wait_for_allocatable(f"kosmos-{east}", cpu="2")


def test_a_kubeconfig_that_would_run_a_program_is_refused(tree):
    evil = remote_clusters.exec_kubeconfig(tree.leaf.server.url, secret_argument="s3cret")
    east = tree.cluster("east", kubeconfig=evil, inline=True)

    message = tree.wait_for_condition(east, "Ready", "False", "KubeconfigRefused")

    assert "commands are not allowed" in message
    assert "s3cret" not in str(tree.get_cluster(east)["status"])
    assert tree.mirrors(east) == []
    assert "commands are not allowed" in tree.wait_for_event(east, "KubeconfigRefused")


def test_an_empty_or_invalid_kubeconfig_is_reported_in_a_condition(tree):
    url = tree.leaf.server.url
    odd = {
        "empty": ("\n", "is empty"),
        "query": (remote_clusters.token_kubeconfig(f"{url}/readyz?q="), "contains a query or a fragment"),
        "tag": ("users: !!bool s3cret", "a value that YAML cannot parse"),
        "break": (remote_clusters.token_kubeconfig(f"{url}\r\nX-Evil: yes"), "contains a line break"),
    }
    named = {word: tree.cluster(word, kubeconfig=text) for word, (text, _) in odd.items()}

    for word, (_, said) in odd.items():
        assert said in tree.wait_for_condition(named[word], "Ready", "False", "KubeconfigRefused")


def test_a_secret_counts_from_when_it_is_there_and_labelled(tree):
    tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east")
    tree.wait_for_allocatable(f"kosmos-{east}", cpu="2")
    tree.secret(east, tree.leaf.server.kubeconfig, is_labelled=False)
    message = tree.wait_for_condition(east, "Reachable", "False", "KubeconfigSecretMissing")
    assert names.LEAF_KUBECONFIG in message
    assert tree.mirrors(east) == [f"kosmos-{east}"]

    tree.leaf.node("n2", cpu="2")
    tree.secret(east, tree.leaf.server.kubeconfig)

    tree.wait_for_condition(east, "Ready", "True")
    tree.wait_for_allocatable(f"kosmos-{east}", cpu="4")


def test_new_credentials_are_followed_without_a_restart(tree):
    tree.leaf.node("n1", cpu="2")
    server = tree.leaf.server
    first = server.user(tree.unique_name("first"), rules=RIGHTS)
    second = server.user(tree.unique_name("second"), rules=RIGHTS)
    east = tree.cluster("east", kubeconfig=first)
    tree.wait_for_allocatable(f"kosmos-{east}", cpu="2")
    version = tree.get_node(f"kosmos-{east}")["metadata"]["uid"]

    tree.secret(east, second)
    server.user(tree.unique_name("first"), rules=[{"apiGroups": [""], "resources": ["events"], "verbs": ["get"]}])
    tree.leaf.node("n2", cpu="1")

    tree.wait_for_allocatable(f"kosmos-{east}", cpu="3")
    tree.wait_for_condition(east, "Ready", "True")
    assert tree.get_node(f"kosmos-{east}")["metadata"]["uid"] == version


def test_a_missing_right_in_the_leaf_is_reported(tree):
    rules = [rule for rule in RIGHTS if rule.get("resources") != ["nodes", "pods"]]
    blind = tree.leaf.server.user(tree.unique_name("blind"), rules=rules)
    east = tree.cluster("east", kubeconfig=blind)

    tree.wait_for_message(east, "ResourcesSynced", "cannot watch nodes: forbidden")

    assert tree.mirrors(east) == []


def test_on_a_paused_cluster_only_leases_and_readiness_follow_the_leaf(tree):
    n1 = tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east", node_model(n1))
    tree.wait_for_allocatable(n1, cpu="2")
    tree.wait_for_condition(east, "Ready", "True")
    tree.annotate(east, paused="true")
    assert "paused" in tree.wait_for_condition(east, "Ready", "Unknown", "Paused")

    tree.leaf.pod("p", n1, cpu="1")
    tree.leaf.patch(n1, {"metadata": {"labels": {"rack": "r1"}}})
    tree.leaf.turn(n1, "False")

    tree.wait_for_ready(n1, "False")
    tree.wait_for_renewal(n1)
    tree.leaf.turn(n1, "True")
    tree.wait_for_ready(n1, "True")
    assert tree.allocatable(n1)["cpu"] == "2"
    assert "rack" not in tree.get_node(n1)["metadata"]["labels"]
    tree.annotate(east, paused=None)
    tree.wait_for_allocatable(n1, cpu="1")
    tree.wait_for_labels(n1, rack="r1")


def test_three_clusters_are_mirrored_side_by_side(tree):
    """A root and two leaves, one of which is shared."""
    tree.leaves[0].node("a", cpu="1", labels={"pool": "a"})
    tree.leaves[1].node("b", cpu="2")
    first = tree.cluster("first", selector_model("a"))
    second = tree.cluster("second", kubeconfig=tree.leaves[1].server.kubeconfig)

    tree.wait_for_allocatable("kosmos-a-0", cpu="1")
    tree.wait_for_allocatable(f"kosmos-{second}", cpu="2")
    tree.delete(first)
    tree.wait_for_mirrors(first)
    tree.leaves[1].node("c", cpu="2")
    tree.wait_for_allocatable(f"kosmos-{second}", cpu="4")


def test_a_converged_cluster_writes_nothing_but_leases(tree, tree_operator):
    n1 = tree.leaf.node("n1")
    east = tree.cluster("east", node_model(n1), selector_model("rest", {}))
    tree.wait_for_condition(east, "Ready", "True")
    tree.wait_until(
        lambda: tree.get_cluster(east)["status"].get("leasesRenewedTime"), "it is told that leases are renewed"
    )

    def is_at_rest():
        before = tree_operator.write_counts()
        tree.wait_for_renewal(n1)
        return tree_operator.write_counts() == before

    tree.wait_until(is_at_rest, "what the first round found out is told")
    before = tree_operator.write_counts()
    for _ in range(2):
        tree.wait_for_renewal(n1)
        tree.wait_for_renewal("kosmos-rest-1")

    assert tree_operator.write_counts() == before
