"""Write counts of the pools benchmark: the pool's object, its cluster's status, Events, and others."""

from __future__ import annotations

import msgspec
from bench.load import MERGE, Call, encode
from bench.pools_fleet import Cost, cluster_path, count_by_resource, deployment_path, lattice_cluster
from bench.replay import EVENTS

from nodeyard.capabilities.pools.types import LatticeCluster, resolved_pools
from nodeyard.capabilities.pools.validation.node_keys import faults, is_synced_in_place


def patch(path: str) -> Call:
    return Call("PATCH", path, encode({}), MERGE)


EVENT = Call("POST", f"{EVENTS}namespaces/default/events", encode({"metadata": {"name": "e1"}}))
OWN = [
    patch(f"{deployment_path(3, 1)}?fieldManager=nodeyard-pools"),
    patch(f"{cluster_path(3)}/status?fieldManager=nodeyard-pools"),
    EVENT,
]


def test_writes_for_the_changed_pool_are_not_others():
    assert Cost.of(OWN, 3, 1) == Cost(pool=1, statuses=1, events=1, others=0)


def test_other_pools_other_clusters_and_the_spec_of_its_cluster_are_others():
    strays = [patch(deployment_path(3, 2)), patch(f"{cluster_path(4)}/status"), patch(cluster_path(3))]

    assert Cost.of([*OWN, *strays], 3, 1).others == 3


def test_writes_are_counted_by_resource_and_subresource():
    calls = [*OWN, patch(cluster_path(3)), patch(deployment_path(4, 1)), patch("/api/v1/namespaces/capi-bench-003")]

    assert count_by_resource(calls) == {
        "machinedeployments": 2,
        "latticeclusters": 1,
        "latticeclusters/status": 1,
        "events": 1,
        "namespaces": 1,
    }


def test_every_pool_is_valid_and_has_a_label_that_changes_in_place():
    cluster = msgspec.convert(lattice_cluster(7, 10), LatticeCluster)
    pools = resolved_pools(cluster.spec.nodes)

    assert len(pools) == 10
    for id, pool in pools.items():
        assert not faults(id, pool)
        assert any(map(is_synced_in_place, pool.labels))
