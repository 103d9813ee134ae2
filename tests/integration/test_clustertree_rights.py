"""The generated role is sufficient and minimal, and missing permissions are reported."""

from tests.builders.woods import hurried, one, whole

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime import rbac


def test_every_right_is_used_and_no_other_is_needed(wood, audited, operator):
    """The life of a Cluster with all its writes. Leaves have their own permissions."""
    audit = audited(CLUSTERTREE)
    operator(hurried())
    n1 = wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east", one(n1), whole())
    wood.until_condition(east, "Ready", "True")
    wood.until(lambda: audit.has("patch leases.coordination.k8s.io in kube-node-lease"), "its lease is renewed")
    wood.leaf.patch(n1, {"metadata": {"labels": {"seen": "yes"}}})
    wood.until_labels(n1, seen="yes")
    wood.leaf.pod("p", n1, cpu="1")
    wood.until_offers(n1, cpu="1")

    def is_counted():
        # Made again in the same words: once the event is there it is counted, which is a patch.
        uid = wood.get(n1)["metadata"]["uid"]
        wood.remove(n1)
        wood.until(lambda: (wood.get(n1) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid, "it is back")
        return audit.has("patch events.events.k8s.io")

    wood.until(is_counted, "the event is counted")
    wood.delete(east)
    wood.until(lambda: wood.see(east) is None, "the Cluster is gone")
    wood.until(lambda: audit.has(f"delete leases.coordination.k8s.io in {NAMESPACE}"), "its share is given back")

    assert audit.needless() == set()
    assert audit.beyond() == set()


def test_secrets_are_read_in_the_granted_namespaces_alone(api, wood, operator):
    """A stolen token lists the Secrets of no other namespace."""
    running = operator(hurried(), granted={names.KUBECONFIGS: [NAMESPACE]})
    wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east")
    west = wood.named("west")
    kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    spec = {"kubeconfigSecretRef": {"name": "way", "namespace": "kube-system"}}
    api.rest.create({**kind, "metadata": {"name": west}, "spec": spec})

    message = wood.until_condition(west, "Ready", "False", "KubeconfigSecretMissing")
    assert "add kube-system to namespaceGrants.clustertree.kubeconfigs in the values of the chart" in message
    wood.until_condition(east, "Ready", "True")
    assert {each for each in running.refused() if "secrets" not in each} == set()
    api.rest.call("DELETE", f"/apis/{names.API_VERSION}/{names.PLURAL}/{west}")
    wood.until(lambda: wood.see(west) is None, "it goes though its Secret was never read")


def test_without_the_right_to_create_nodes_it_says_so(wood, operator):
    rules = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if (rule["resources"], verb) != (["nodes"], "create")]}
        for rule in rbac.rules(CLUSTERTREE, installs_crds=True)
    ]
    running = operator(hurried(), rules=rules)
    wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east", inline=True)

    message = wood.until_condition(east, "Ready", "False", "WriteFailed")

    assert 'cannot create resource "nodes"' in message
    assert 'cannot create resource "nodes"' in wood.until_events(east, "NodeCreatedFailed")
    assert running.refused() == ["create nodes"]
    assert wood.mirrors(east) == []
