"""The generated role is enough, no more is used, and what is missing is told."""

from tests.builders.woods import hurried, one, whole

from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime import rbac


def test_every_right_is_used_and_no_other_is_needed(wood, audited, operator):
    """A Cluster's life with everything that can happen. Leaves are asked with rights of their own."""
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


def test_without_the_right_to_create_nodes_it_says_so(wood, operator):
    rules = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if (rule["resources"], verb) != (["nodes"], "create")]}
        for rule in rbac.rules(CLUSTERTREE, installs_crds=True)
    ]
    running = operator(hurried(), rules=rules)
    wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east")

    message = wood.until_condition(east, "Ready", "False", "WriteFailed")

    assert 'cannot create resource "nodes"' in message
    assert 'cannot create resource "nodes"' in wood.until_events(east, "NodeCreatedFailed")
    assert running.refused() == ["create nodes"]
    assert wood.mirrors(east) == []
