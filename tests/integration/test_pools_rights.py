"""Every right of the generated role is used, and no other is needed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.builders.lattices import CLASSES, CLUSTERS, SERVICES
from tests.builders.pools import pool
from tests.builders.rights import COUNTED, RENEWED, unregistered

from nodeyard.capabilities.pools import watched
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import drains
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.operators import LOCAL_WEBHOOKS

RARE = {COUNTED, RENEWED} | unregistered(POOLS)
ALIKE = {
    each.plural: provider.plural
    for provider, *others in (watched.INFRASTRUCTURE_CLUSTERS, watched.MACHINE_TEMPLATES)
    for each in others
}
"""Kinds of providers that are not installed here; those of one that is stand for them."""


@pytest.fixture
def elsewhere():
    """Another server than the one that has the Cluster API objects."""
    with EmbeddedServer(controllers=()) as server:
        yield server


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(drains, "SETTLE", timedelta(seconds=1))
    monkeypatch.setattr(drains, "RETRY", timedelta(seconds=1))


def test_every_right_is_used_and_no_other_is_needed(lattice, elsewhere, hurried, audited, operator):
    """A cluster's life: a pool of it is drained, then all of it goes."""
    audit = audited(POOLS, alike=ALIKE)
    operator(POOLS, webhooks=LOCAL_WEBHOOKS)
    node_class, service = lattice.node_class(lattice.name("class")), lattice.service(lattice.name("service"))
    pools = {"stays": pool(1), "goes": pool(1, nodeClass=node_class)}
    name = lattice.cluster(lattice.name(), workerPools=pools, pivot="Never")
    for each in pools:
        lattice.joined(name, each, 1)
    for path in (f"{CLASSES}/{node_class}", f"{SERVICES}/{service}"):
        lattice.until(lambda path=path: lattice.rest.get(path).get("status"), f"{path} says how it is")
    (node,) = lattice.nodes_of(name, "goes")
    lattice.machines.add_pods(node["metadata"]["name"], 1, app="evicted")
    lattice.change_pools(name, goes=None)
    lattice.gone(name, "goes")
    lattice.until(lambda: not lattice.templates(name, "goes"), "its templates are collected")
    lattice.lead(name, elsewhere.config)
    lattice.until(lambda: lattice.status(name).get("pivoted") is False, "it is known to be another cluster")
    lattice.delete(name)
    lattice.until(lambda: not lattice.exists(f"{CLUSTERS}/{name}"), "it is gone")

    assert audit.needless(RARE) == set()
    assert audit.beyond() == set()
