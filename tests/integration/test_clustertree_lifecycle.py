"""Life cycle of a Cluster: kubeconfig, enable, pause and deletion, in any state of the leaf."""

from __future__ import annotations

import pytest
from tests.builders import leaves
from tests.builders.woods import one, party

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
    """Between the operator and the first leaf."""
    leaf = leaf_servers[0]
    with FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token) as proxy:
        yield proxy


def test_a_deleted_cluster_takes_its_nodes_and_leases_with_it(wood):
    n1 = wood.leaf.node("n1")
    east = wood.cluster("east", one(n1))
    wood.until_renewed(n1)
    assert names.FINALIZER in wood.see(east)["metadata"]["finalizers"]

    wood.delete(east)

    wood.until(lambda: wood.see(east) is None, "the Cluster is gone")
    wood.until(lambda: wood.get(n1) is None and wood.lease(n1) is None, "its node and lease are gone")


def test_a_cluster_can_be_deleted_while_its_leaf_is_down(wood, wire):
    wood.leaf.node("n1")
    east = wood.cluster("east", kubeconfig=wire.kubeconfig)
    wood.until_renewed(f"kosmos-{east}")
    wire.add(Drop())

    wood.delete(east)

    wood.until(lambda: wood.see(east) is None, "the Cluster is gone")
    assert wood.mirrors(east) == []
    wood.until(lambda: wood.lease(f"kosmos-{east}") is None, "its lease is gone")


def test_a_cluster_can_be_deleted_when_its_kubeconfig_is_broken(wood):
    wood.leaf.node("n1")
    east = wood.cluster("east")
    wood.until_mirrors(east, f"kosmos-{east}")
    wood.secret(east, "no kubeconfig at all")
    wood.until_condition(east, "Reachable", "False", "KubeconfigRefused")

    wood.delete(east)

    wood.until(lambda: wood.see(east) is None, "the Cluster is gone")
    assert wood.mirrors(east) == []


def test_a_cluster_that_is_switched_off_has_no_nodes_until_it_is_on_again(wood):
    wood.leaf.node("n1", cpu="3")
    east = wood.cluster("east")
    wood.until_mirrors(east, f"kosmos-{east}")

    wood.change(east, enable=False)
    wood.until_mirrors(east)
    assert "enable" in wood.until_condition(east, "Ready", "True", "TreeDisabled")
    wood.until(lambda: not wood.see(east)["metadata"].get("finalizers"), "nothing holds the Cluster")

    wood.change(east, enable=True)
    wood.until_offers(f"kosmos-{east}", cpu="3")


def test_the_root_itself_is_not_mirrored(wood):
    metadata = {"annotations": {names.CLUSTER_ROLE: names.ROOT}}
    root = wood.cluster("root", kubeconfig=wood.root.kubeconfig, metadata=metadata)

    wood.until_condition(root, "Ready", "True", "IsRoot")

    assert wood.mirrors(root) == []


def test_a_kubeconfig_may_stand_in_the_cluster_itself(wood):
    wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east", inline=True)

    wood.until_offers(f"kosmos-{east}", cpu="2")


def test_a_kubeconfig_that_would_run_a_program_is_refused(wood):
    evil = leaves.exec_kubeconfig(wood.leaf.server.url, secret_argument="s3cret")
    east = wood.cluster("east", kubeconfig=evil, inline=True)

    message = wood.until_condition(east, "Ready", "False", "KubeconfigRefused")

    assert "commands are not allowed" in message
    assert "s3cret" not in str(wood.see(east)["status"])
    assert wood.mirrors(east) == []
    assert "commands are not allowed" in wood.until_events(east, "KubeconfigRefused")


def test_a_kubeconfig_that_is_empty_or_odd_is_told_in_a_condition(wood):
    url = wood.leaf.server.url
    odd = {
        "empty": ("\n", "is empty"),
        "query": (leaves.token_kubeconfig(f"{url}/readyz?q="), "contains a query or a fragment"),
        "break": (leaves.token_kubeconfig(f"{url}\r\nX-Evil: yes"), "contains a line break"),
    }
    named = {word: wood.cluster(word, kubeconfig=text) for word, (text, _) in odd.items()}

    for word, (_, said) in odd.items():
        assert said in wood.until_condition(named[word], "Ready", "False", "KubeconfigRefused")


def test_a_secret_counts_from_when_it_is_there_and_labelled(wood):
    wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east")
    wood.until_offers(f"kosmos-{east}", cpu="2")
    wood.secret(east, wood.leaf.server.kubeconfig, is_labelled=False)
    message = wood.until_condition(east, "Reachable", "False", "KubeconfigSecretMissing")
    assert names.LEAF_KUBECONFIG in message
    assert wood.mirrors(east) == [f"kosmos-{east}"]

    wood.leaf.node("n2", cpu="2")
    wood.secret(east, wood.leaf.server.kubeconfig)

    wood.until_condition(east, "Ready", "True")
    wood.until_offers(f"kosmos-{east}", cpu="4")


def test_new_credentials_are_followed_without_a_restart(wood):
    wood.leaf.node("n1", cpu="2")
    server = wood.leaf.server
    first = server.user(wood.named("first"), rules=RIGHTS)
    second = server.user(wood.named("second"), rules=RIGHTS)
    east = wood.cluster("east", kubeconfig=first)
    wood.until_offers(f"kosmos-{east}", cpu="2")
    version = wood.get(f"kosmos-{east}")["metadata"]["uid"]

    wood.secret(east, second)
    server.user(wood.named("first"), rules=[{"apiGroups": [""], "resources": ["events"], "verbs": ["get"]}])
    wood.leaf.node("n2", cpu="1")

    wood.until_offers(f"kosmos-{east}", cpu="3")
    wood.until_condition(east, "Ready", "True")
    assert wood.get(f"kosmos-{east}")["metadata"]["uid"] == version


def test_a_right_that_is_missing_in_the_leaf_is_told(wood):
    rules = [rule for rule in RIGHTS if rule.get("resources") != ["nodes", "pods"]]
    blind = wood.leaf.server.user(wood.named("blind"), rules=rules)
    east = wood.cluster("east", kubeconfig=blind)

    wood.until_says(east, "ResourcesSynced", "cannot watch nodes: forbidden")

    assert wood.mirrors(east) == []


def test_of_a_paused_cluster_only_leases_and_readiness_follow_the_leaf(wood):
    n1 = wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east", one(n1))
    wood.until_offers(n1, cpu="2")
    wood.until_condition(east, "Ready", "True")
    wood.annotate(east, paused="true")
    assert "paused" in wood.until_condition(east, "Ready", "Unknown", "Paused")

    wood.leaf.pod("p", n1, cpu="1")
    wood.leaf.patch(n1, {"metadata": {"labels": {"rack": "r1"}}})
    wood.leaf.turn(n1, "False")

    wood.until_ready(n1, "False")
    wood.until_renewed(n1)
    wood.leaf.turn(n1, "True")
    wood.until_ready(n1, "True")
    assert wood.offers(n1)["cpu"] == "2"
    assert "rack" not in wood.get(n1)["metadata"]["labels"]
    wood.annotate(east, paused=None)
    wood.until_offers(n1, cpu="1")
    wood.until_labels(n1, rack="r1")


def test_three_clusters_stand_beside_each_other(wood):
    """A root and two leaves, one of which is shared."""
    wood.leaves[0].node("a", cpu="1", labels={"pool": "a"})
    wood.leaves[1].node("b", cpu="2")
    first = wood.cluster("first", party("a"))
    second = wood.cluster("second", kubeconfig=wood.leaves[1].server.kubeconfig)

    wood.until_offers("kosmos-a-0", cpu="1")
    wood.until_offers(f"kosmos-{second}", cpu="2")
    wood.delete(first)
    wood.until_mirrors(first)
    wood.leaves[1].node("c", cpu="2")
    wood.until_offers(f"kosmos-{second}", cpu="4")


def test_at_rest_nothing_but_leases_is_written(wood, tree_operator):
    n1 = wood.leaf.node("n1")
    east = wood.cluster("east", one(n1), party("rest", {}))
    wood.until_condition(east, "Ready", "True")
    wood.until(lambda: wood.see(east)["status"].get("leasesRenewedTime"), "it is told that leases are renewed")

    def is_at_rest():
        before = tree_operator.written()
        wood.until_renewed(n1)
        return tree_operator.written() == before

    wood.until(is_at_rest, "what the first round found out is told")
    before = tree_operator.written()
    for _ in range(2):
        wood.until_renewed(n1)
        wood.until_renewed("kosmos-rest-1")

    assert tree_operator.written() == before
