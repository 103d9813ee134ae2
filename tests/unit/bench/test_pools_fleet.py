"""What was written for pools, told apart: one pool's own, its cluster's status, events, and anything else."""

from __future__ import annotations

import msgspec
from bench.load import MERGE, Call, encoded
from bench.pools_fleet import Cost, by_resource, cluster_path, deployment_path, lattice_cluster
from bench.replay import EVENTS

from nodeyard.capabilities.pools.types import LatticeCluster, resolved_pools
from nodeyard.capabilities.pools.validation.node_keys import faults, is_synced_in_place


def patch(path: str) -> Call:
    return Call("PATCH", path, encoded({}), MERGE)


EVENT = Call("POST", f"{EVENTS}namespaces/default/events", encoded({"metadata": {"name": "e1"}}))
OWN = [
    patch(f"{deployment_path(3, 1)}?fieldManager=nodeyard-pools"),
    patch(f"{cluster_path(3)}/status?fieldManager=nodeyard-pools"),
    EVENT,
]


def test_a_change_that_stays_with_its_pool_costs_nothing_elsewhere():
    assert Cost.of(OWN, 3, 1) == Cost(pool=1, statuses=1, events=1, others=0)


def test_another_pool_another_cluster_and_the_spec_of_its_own_are_other_objects():
    strays = [patch(deployment_path(3, 2)), patch(f"{cluster_path(4)}/status"), patch(cluster_path(3))]

    assert Cost.of([*OWN, *strays], 3, 1).others == 3


def test_writes_are_counted_by_resource_and_statuses_apart():
    calls = [*OWN, patch(cluster_path(3)), patch(deployment_path(4, 1)), patch("/api/v1/namespaces/capi-bench-003")]

    assert by_resource(calls) == {
        "machinedeployments": 2,
        "latticeclusters": 1,
        "latticeclusters/status": 1,
        "events": 1,
        "namespaces": 1,
    }


def test_every_pool_of_the_clusters_is_sound_and_has_a_label_that_changes_in_place():
    cluster = msgspec.convert(lattice_cluster(7, 10), LatticeCluster)
    pools = resolved_pools(cluster.spec.nodes)

    assert len(pools) == 10
    for id, pool in pools.items():
        assert not faults(id, pool)
        assert any(map(is_synced_in_place, pool.labels))
