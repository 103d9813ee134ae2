"""Offers of pools, collected from LatticeClusters and their objects."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from tests.builders.pool_objects import running, with_deployment, with_management, with_replicas
from tests.builders.pool_views import PoolsView
from tests.builders.pools import NOW, SEED_POOLS, cluster, pool, service

from nodeyard.capabilities.pools.collect import collect_services
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Workload

POOLS = {
    "gpu": pool(2, labels={"tier": "gpu"}, taints=["nvidia.com/gpu:NoSchedule"]),
    "web": pool(3, labels={"tier": "web"}),
}


def world(name="prod", **given):
    return running(cluster(name, **{"workerPools": POOLS, **given}))


def offers(*worlds):
    return collect_services(PoolsView(*worlds, services=[service("web")]), NOW).offers


def unavailable(*worlds):
    return {f"{each.cluster}/{each.pool}": each.unavailable_reason for each in offers(*worlds)}


def test_a_pool_offers_its_labels_its_id_and_its_taints():
    gpu, web = offers(world())

    assert gpu.labels == {"tier": "gpu", "lattice.dev/pool": "gpu"}
    assert [(taint.key, taint.effect) for taint in gpu.taints] == [("nvidia.com/gpu", "NoSchedule")]
    assert (web.cluster, web.pool, web.replicas, web.unavailable_reason) == ("prod", "web", 3, None)


def test_offers_are_not_computed_without_services():
    assert collect_services(PoolsView(world()), NOW).offers == []


def test_offers_come_from_all_clusters_in_their_order():
    assert list(unavailable(world("b"), world("a"))) == ["a/gpu", "a/web", "b/gpu", "b/web"]


def test_workers_of_the_old_form_are_the_pool_default():
    (offer,) = offers(running(cluster("prod", workers=3)))

    assert (offer.pool, offer.labels) == ("default", {"lattice.dev/pool": "default"})


def test_a_pool_without_nodes_is_no_candidate():
    assert unavailable(world(workerPools={"none": pool(0), "some": pool(1)})) == {
        "prod/none": Reason.POOL_EMPTY,
        "prod/some": None,
    }


def test_a_pool_that_was_never_made_is_no_candidate():
    found = world()

    assert set(unavailable(with_management(found, deployments={})).values()) == {Reason.POOL_EMPTY}


def test_the_actual_replicas_of_an_autoscaled_pool_count():
    scaled = world(workerPools={"web": pool(3, min=0, max=9)}, autoscaling="ClusterAutoscaler")
    (deployment,) = scaled.management.deployments.values()

    (grown,) = offers(with_deployment(scaled, with_replicas(deployment, 7)))
    (shrunk,) = offers(with_deployment(scaled, with_replicas(deployment, 0)))

    assert (grown.replicas, shrunk.unavailable_reason) == (7, Reason.POOL_EMPTY)


def test_a_pool_removed_from_the_spec_is_being_removed():
    before = world()
    after = replace(before, cluster=cluster("prod", workerPools={"web": POOLS["web"]}))

    assert [(each.pool, each.is_removed) for each in offers(after)] == [("gpu", True), ("web", False)]


def test_before_the_pivot_no_pool_is_a_candidate_unless_none_is_awaited():
    elsewhere = Workload(uid="another")

    assert set(unavailable(replace(world(), workload=elsewhere)).values()) == {Reason.CLUSTER_NOT_READY}
    assert set(unavailable(replace(world(pivot="Never"), workload=elsewhere)).values()) == {None}


def test_before_there_is_a_control_plane_no_pool_is_a_candidate():
    found = world(pivot="Never")
    bare = {**found.management.cluster, "status": {}}

    assert set(unavailable(with_management(found, cluster=bare)).values()) == {Reason.CLUSTER_NOT_READY}


def test_a_cluster_that_is_going_has_no_candidates():
    going = cluster("prod", workerPools=POOLS, metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})

    assert set(unavailable(replace(world(), cluster=going)).values()) == {Reason.CLUSTER_NOT_READY}


def test_a_service_that_cannot_be_read_is_set_aside_even_where_an_older_one_is_known():
    good, bad = service("good"), service("bad")
    view = PoolsView(services=[bad, good], malformed={("default", "bad"): "broken"})

    snapshot = collect_services(view, NOW)

    assert (list(snapshot.services), snapshot.malformed) == ([good], {("default", "bad"): "broken"})


def test_the_pools_of_the_design_are_offered_as_they_are_written():
    written = cluster("prod", workerPools=SEED_POOLS).spec.nodes.worker_pools
    found = offers(
        running(cluster("prod", workerPools={id: {**each, "nodeClass": ""} for id, each in SEED_POOLS.items()}))
    )

    assert {each.pool: msgspec.to_builtins(each.taints) for each in found} == {
        id: msgspec.to_builtins(each.taints) for id, each in written.items()
    }
