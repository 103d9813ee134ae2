"""The generated role is sufficient and minimal, and missing permissions are reported."""

from tests.builders.tree_env import node_model, whole_model, with_fast_lease_loop

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime import rbac


def test_every_right_is_used_and_no_other_is_needed(tree, audited, operator):
    """Create and delete a Cluster with all its writes. Leaves have their own permissions."""
    audit = audited(CLUSTERTREE)
    operator(with_fast_lease_loop())
    n1 = tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east", node_model(n1), whole_model())
    tree.wait_for_condition(east, "Ready", "True")
    tree.wait_until(lambda: audit.has("patch leases.coordination.k8s.io in kube-node-lease"), "its lease is renewed")
    tree.leaf.patch(n1, {"metadata": {"labels": {"seen": "yes"}}})
    tree.wait_for_labels(n1, seen="yes")
    tree.leaf.pod("p", n1, cpu="1")
    tree.wait_for_allocatable(n1, cpu="1")

    def is_counted():
        # A repeated Event with the same text is counted, by a patch.
        uid = tree.get_node(n1)["metadata"]["uid"]
        tree.delete_node(n1)
        tree.wait_until(
            lambda: (tree.get_node(n1) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid, "it is back"
        )
        return audit.has("patch events.events.k8s.io")

    tree.wait_until(is_counted, "the event is counted")
    tree.delete(east)
    tree.wait_until(lambda: tree.get_cluster(east) is None, "the Cluster is gone")
    tree.wait_until(lambda: audit.has(f"delete leases.coordination.k8s.io in {NAMESPACE}"), "its share is given back")

    assert audit.unused() == set()
    assert audit.forbidden() == set()


def test_secrets_are_read_in_the_granted_namespaces_alone(api, tree, operator):
    """A stolen token lists the Secrets of no other namespace."""
    running = operator(with_fast_lease_loop(), granted={names.KUBECONFIGS: [NAMESPACE]})
    tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east")
    west = tree.unique_name("west")
    kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    spec = {"kubeconfigSecretRef": {"name": "way", "namespace": "kube-system"}}
    api.rest.create({**kind, "metadata": {"name": west}, "spec": spec})

    message = tree.wait_for_condition(west, "Ready", "False", "KubeconfigSecretMissing")
    assert "add kube-system to namespaceGrants.clustertree.kubeconfigs in the values of the chart" in message
    tree.wait_for_condition(east, "Ready", "True")
    assert {each for each in running.refused() if "secrets" not in each} == set()
    api.rest.call("DELETE", f"/apis/{names.API_VERSION}/{names.PLURAL}/{west}")
    tree.wait_until(lambda: tree.get_cluster(west) is None, "it goes though its Secret was never read")


def test_without_the_right_to_create_nodes_it_says_so(tree, operator):
    rules = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if (rule["resources"], verb) != (["nodes"], "create")]}
        for rule in rbac.rules(CLUSTERTREE, installs_crds=True)
    ]
    running = operator(with_fast_lease_loop(), rules=rules)
    tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east", inline=True)

    message = tree.wait_for_condition(east, "Ready", "False", "WriteFailed")

    assert 'cannot create resource "nodes"' in message
    assert 'cannot create resource "nodes"' in tree.wait_for_event(east, "NodeCreatedFailed")
    assert running.refused() == ["create nodes"]
    assert tree.mirrors(east) == []
