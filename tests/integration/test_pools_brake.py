"""A change that disturbs more than it may is held, says so where people look, and goes with one approval.

The operator may disturb nothing here. Another that leads in its place would not hold anything, so these tests have a
file of their own.
"""

import re
from datetime import timedelta

import pytest
from tests.builders.lattices import CLUSTERS
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import drains
from nodeyard.plan.brake import Limit
from nodeyard.testing.embedded import EmbeddedServer

NEEDS_APPROVAL = "NeedsApproval"


@pytest.fixture
def braked(lattice, operator, monkeypatch):
    """LatticeClusters under an operator that asks before it disturbs a single node."""
    monkeypatch.setattr(drains, "SETTLE", timedelta(seconds=1))
    operator(POOLS, limit=Limit(nodes=0, percent=0))
    return lattice


@pytest.fixture
def elsewhere():
    """Another server than the one that has the Cluster API objects."""
    with EmbeddedServer() as server:
        yield server


def with_two_pools(lattice, **spec):
    name = lattice.cluster(lattice.name("held"), workerPools={"a": pool(1), "b": pool(1)}, **spec)
    for each in ("a", "b"):
        lattice.joined(name, each, 1)
    return name


def held(lattice, name):
    """Wait until something is held; the id that its condition and its event name."""
    lattice.conditioned(name, "Ready", "False", NEEDS_APPROVAL)
    message = lattice.condition(name, "Ready")["message"]
    (id,) = re.findall(r"`nodeyard approve (\w+)` lets it go", message)
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
