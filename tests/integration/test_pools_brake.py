"""The brake holds a change that exceeds the limit, reports it in conditions and events, and one approval releases it.

The operator may disrupt no node here. Another leader would hold nothing, so these tests have their own file.
"""

import re
from datetime import timedelta

import pytest
from tests.builders.lattices import CLASSES, CLUSTERS
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import drains
from nodeyard.kube.names import APPROVE
from nodeyard.plan.brake import Limit
from nodeyard.testing.embedded import EmbeddedServer

NEEDS_APPROVAL = "NeedsApproval"


@pytest.fixture
def braked(lattice, operator, monkeypatch):
    """LatticeClusters with an operator that needs approval to disrupt a single node."""
    monkeypatch.setattr(drains, "SETTLE", timedelta(seconds=1))
    operator(POOLS, limit=Limit(nodes=0, percent=0))
    return lattice


@pytest.fixture
def elsewhere():
    """A second API server, without the Cluster API objects."""
    with EmbeddedServer() as server:
        yield server


def with_two_pools(lattice, **spec):
    name = lattice.cluster(lattice.name("held"), workerPools={"a": pool(1), "b": pool(1)}, **spec)
    for each in ("a", "b"):
        lattice.joined(name, each, 1)
    return name


def held(lattice, name):
    """Wait until a plan is held; return the id in its condition and event."""
    lattice.conditioned(name, "Ready", "False", NEEDS_APPROVAL)
    message = lattice.condition(name, "Ready")["message"]
    (id,) = re.findall(r"`nodeyard approve (\w+)` to proceed", message)
    lattice.until(lambda: lattice.told(name, NEEDS_APPROVAL), "an event tells of it")
    return id


def approve(lattice, id):
    code, said = lattice.nodeyard("approve", id)
    assert code == 0, said


def test_a_pool_that_is_taken_out_keeps_its_nodes_until_one_approval_drains_and_deletes_it(braked):
    name = with_two_pools(braked)
    braked.ready(name)
    before = braked.machines_of(name, "b")

    braked.change_pools(name, b=None)

    id = held(braked, name)
    assert names.DRAIN_STARTED not in braked.deployment(name, "b")["metadata"].get("annotations", {})
    (node,) = braked.nodes_of(name, "b")
    assert not node["spec"].get("unschedulable")
    assert braked.machines_of(name, "b") == before
    assert braked.pool(name, "b")["phase"] == "Blocked"

    approve(braked, id)

    braked.gone(name, "b")
    braked.ready(name)
    assert len(braked.nodes_of(name, "a")) == 1
    assert braked.told(name, NEEDS_APPROVAL) == 1


def test_a_cluster_that_is_deleted_keeps_its_machines_until_one_approval_takes_it_all(braked, elsewhere):
    name = with_two_pools(braked, pivot="Never")
    braked.lead(name, elsewhere.config)
    braked.until(lambda: braked.status(name).get("pivoted") is False, "it is known to be another cluster")
    before = braked.machines_of(name, "a") + braked.machines_of(name, "b")

    braked.delete(name)

    id = held(braked, name)
    assert braked.status(name)["phase"] == "Deleting"
    for path in (braked.path(name, "clusters", name), f"/api/v1/namespaces/{names.namespace(name)}"):
        assert "deletionTimestamp" not in braked.rest.get(path)["metadata"]
    assert braked.machines_of(name, "a") + braked.machines_of(name, "b") == before
    _, planned = braked.nodeyard("plan", "--max-disruption", "0")
    assert id in planned

    approve(braked, id)

    braked.until(lambda: not braked.exists(f"{CLUSTERS}/{name}"), "it is gone")
    assert not braked.exists(f"/api/v1/namespaces/{names.namespace(name)}")
    assert braked.told(name, NEEDS_APPROVAL) == 1


def test_an_edit_of_a_class_is_counted_over_all_clusters_and_goes_with_one_approval(lattice, operator):
    """Neither cluster alone exceeds the limit."""
    operator(POOLS, limit=Limit(nodes=1, percent=0))
    node_class = lattice.node_class(lattice.name("class"), docker={"image": "kindest/node:one"})
    pools = {"a": pool(1, nodeClass=node_class)}
    clusters = [lattice.cluster(lattice.name("held"), workerPools=pools) for _ in range(2)]
    for each in clusters:
        lattice.joined(each, "a", 1)
        lattice.ready(each)
    before = {each: lattice.machines_of(each, "a") for each in clusters}

    lattice.change_class(node_class, docker={"image": "kindest/node:two"})

    (id,) = {held(lattice, each) for each in clusters}
    assert {each: lattice.machines_of(each, "a") for each in clusters} == before
    assert all("held: 2 of " in lattice.condition(each, "Ready")["message"] for each in clusters)

    def held_on_class():
        conditions = lattice.rest.get(f"{CLASSES}/{node_class}")["status"]["conditions"]
        return [each["message"] for each in conditions if each["type"] == "Held"]

    lattice.until(lambda: [id in each for each in held_on_class()] == [True], "the class is Held")

    approve(lattice, id)
    lattice.until(lambda: not held_on_class(), "nothing of the class is held any more")

    for each in clusters:
        lattice.until(lambda each=each: lattice.machines_of(each, "a") != before[each], f"{each} follows the class")
        lattice.joined(each, "a", 1)
        lattice.ready(each)
    assert id in lattice.rest.get(f"{CLASSES}/{node_class}")["metadata"]["annotations"][APPROVE]
