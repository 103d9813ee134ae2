"""One edit of a LatticeNodeClass is one approval group over all clusters that use it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.builders.pool_objects import changed, running, with_deployment
from tests.builders.pool_views import PoolsView
from tests.builders.pools import NOW, cluster, node_class, pool

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.collect import collect
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeNodeClass
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.model import Action, Plan

CLUSTERS = [f"c{number:02}" for number in range(4)]
CHANGED = "change uid-c00 1 c00-pool-a: the machine template (nodeClass, provider settings)"


def a_class(image: str = "one", generation: int = 1, **docker: Any) -> LatticeNodeClass:
    given = {"docker": {"image": image, **docker}}
    return node_class("medium", metadata={"generation": generation}, **given)


def a_world(name: str) -> PoolsSnapshot:
    """A cluster with a pool of the class, and another pool."""
    return running(cluster(name, workerPools={"a": pool(10, nodeClass="medium"), "b": pool(5)}), a_class())


def edited(world: PoolsSnapshot, now: LatticeNodeClass) -> PoolsSnapshot:
    return replace(world, classes={**world.classes, "medium": now})


def plan_of(name: str, *worlds: PoolsSnapshot) -> Plan:
    """Plan one cluster, with class edits collected from a view of all clusters.

    The view does not contain the whole snapshot of the cluster.
    """
    collected = collect(PoolsView(*worlds), name, NOW)
    assert collected is not None
    world = next(each for each in worlds if each.cluster.name == name)
    return plan(replace(world, class_edits=collected.class_edits), NOW).plan


def rolls(name: str, *worlds: PoolsSnapshot) -> list[Action]:
    """Return the actions that replace nodes."""
    return [each for each in plan_of(name, *worlds).actions if each.reason == "PoolRolled"]


def test_an_edit_is_one_group_that_counts_the_nodes_of_all_clusters():
    worlds = [edited(a_world(name), a_class("two", generation=2)) for name in CLUSTERS]

    found = [roll for name in CLUSTERS for roll in rolls(name, *worlds)]

    assert {(each.approval_group, each.group_nodes, each.group_managed) for each in found} == {
        ("roll class uid-medium 2", 40, 60)
    }
    assert {str(each.group_root) for each in found} == {"LatticeNodeClass medium"}
    assert len(found) == len(CLUSTERS)


def test_each_part_is_held_by_the_size_of_the_whole_and_goes_with_one_approval():
    worlds = [edited(a_world(name), a_class("two", generation=2)) for name in CLUSTERS]
    plans = [plan_of(name, *worlds) for name in CLUSTERS]

    held = [brake(each, Limit(), managed=15).held for each in plans]

    ids = {each.id for each in held if each is not None}
    assert None not in held
    assert len(ids) == 1
    assert [brake(each, Limit(), managed=15, approved=ids).held for each in plans] == [None] * len(CLUSTERS)


def test_an_approval_is_for_one_generation_of_the_class():
    worlds = [edited(a_world("c00"), a_class(f"image-{generation}", generation)) for generation in (2, 3)]
    groups = [roll.approval_group for world in worlds for roll in rolls("c00", world)]
    assert groups == ["roll class uid-medium 2", "roll class uid-medium 3"]


def test_clusters_that_have_followed_are_not_counted_again():
    now = a_class("two", generation=2)
    done = running(cluster("c01", workerPools={"a": pool(10, nodeClass="medium")}), now)
    (roll,) = rolls("c00", edited(a_world("c00"), now), done)
    assert roll.group_nodes == 10


def test_another_class_in_the_pool_is_an_edit_of_its_cluster_alone():
    world = a_world("c00")
    wanted = cluster("c00", workerPools={"a": pool(10, nodeClass="big"), "b": pool(5)})
    world = replace(world, cluster=wanted, classes={"big": node_class("big", docker={"image": "big"})})
    (roll,) = rolls("c00", world, a_world("c01"))
    assert (roll.approval_group, roll.group_nodes, roll.group_root) == (CHANGED, 0, None)


def test_an_edit_of_the_cluster_that_changes_its_machines_is_its_own():
    pools = {"a": pool(10, nodeClass="medium")}
    world = running(cluster("c00", workerPools=pools), node_class("medium"))
    world = replace(world, cluster=cluster("c00", config={"docker": {"image": "base"}}, workerPools=pools))
    (roll,) = [each for each in rolls("c00", world) if each.object.name == "c00-pool-a"]
    assert (roll.approval_group, roll.group_nodes) == (CHANGED, 0)


def test_ineffective_settings_replace_nothing_and_are_not_recorded():
    world = edited(a_world("c00"), a_class("one", generation=2, memory="8Gi"))
    assert rolls("c00", world) == []
    assert plan_of("c00", world).actions == ()


def test_pools_of_earlier_releases_that_record_no_class_are_counted_by_their_spec():
    """The class was edited while the operator was upgraded to a release that records classes."""
    worlds = []
    for name in CLUSTERS:
        world = edited(a_world(name), a_class("two", generation=2))
        deployment = world.management.deployments[f"{name}-pool-a"]
        worlds.append(with_deployment(world, changed(deployment, "metadata.annotations", {})))
    assert [roll.group_nodes for name in CLUSTERS for roll in rolls(name, *worlds)] == [40] * len(CLUSTERS)


def test_an_approval_on_a_class_plans_its_clusters_again():
    (watch,) = [each for each in POOLS.watches if each.resource.kind == names.CLASS_KIND]
    old, view = a_class(), PoolsView(a_world("c00"))
    metadata = msgspec.structs.replace(old.metadata, annotations={"nodeyard.dev/approve": "x"})
    assert "cluster/c00" in watch.map_with_view(view, old, msgspec.structs.replace(old, metadata=metadata))
    assert not list(watch.map_with_view(view, old, old))


@pytest.mark.parametrize("key", ["cluster/c00", "classes"])
def test_an_edit_is_approved_on_the_class(key):
    found = POOLS.roots.approval(PoolsView(a_world("c00")), key)
    assert [each.metadata.name for each in found] == (["medium"] if key == "cluster/c00" else [])
