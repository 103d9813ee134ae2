"""The generated role is enough, no more is used, and what is missing is told."""

import pytest
from tests.builders.requests import ListeningTransport, granted
from tests.builders.woods import hurried, one, whole

from nodeyard.app import connections
from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.runtime import rbac
from nodeyard.testing.faults import Drop, Status


@pytest.fixture
def listened(monkeypatch):
    """Everything that operators ask the root for while the test runs."""
    noted = []
    transport = connections.AioTransport
    monkeypatch.setattr(connections, "AioTransport", lambda config: ListeningTransport(transport(config), noted))
    return noted


def test_every_right_that_is_declared_is_used(wood, faults, operator, listened):
    """A Cluster's life with everything that can happen, lost answers included: they are what single reads are for.

    The server does not stream lists, as older ones do not.
    """
    faults.add(Status(400), path="sendInitialEvents")
    faults.add(Drop(after_sending=True), method="PATCH", path=r"/nodes/[^/?]+/status\?", times=1)
    faults.add(Drop(after_sending=True), method="PATCH", path=rf"/{names.PLURAL}/[^/?]+\?", times=1)
    operator(hurried(), through=faults.kubeconfig)
    n1 = wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east", one(n1), whole())
    wood.until_condition(east, "Ready", "True")
    wood.until_renewed(n1)
    wood.leaf.patch(n1, {"metadata": {"labels": {"seen": "yes"}}})
    wood.until_labels(n1, seen="yes")
    wood.leaf.pod("p", n1, cpu="1")
    wood.until_offers(n1, cpu="1")
    for _ in range(2):
        # Made again in the same words: the second time the event is counted, which is a patch.
        uid = wood.get(n1)["metadata"]["uid"]
        wood.remove(n1)
        wood.until(lambda uid=uid: (wood.get(n1) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid, "it is back")
    wood.until(lambda: ("events.k8s.io", "events", "patch") in rights(listened), "the event is counted")
    wood.delete(east)
    wood.until(lambda: wood.see(east) is None, "the Cluster is gone")
    wood.until(lambda: ("coordination.k8s.io", "leases", "delete") in rights(listened), "its share is given back")

    elsewhere = [right for rules in rbac.rules_elsewhere(CLUSTERTREE).values() for right in granted(rules)]
    declared = [*granted(rbac.rules(CLUSTERTREE)), *granted(rbac.local_rules(CLUSTERTREE)), *elsewhere]
    assert {right for right, _ in declared} - rights(listened) == set()


def rights(listened):
    return {each.right for each in listened}


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
