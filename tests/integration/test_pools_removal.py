"""Removal of a pool with Drain, Orphan and Force, and its cancellation, on both servers."""

import pytest
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names
from nodeyard.kube.names import POOL_DRAINING

HELD = "nodeyard.test/held"
POOLS = {"stays": 1, "guarded": 2, "returning": 2, "forced": 1, "orphaned": 1}


@pytest.fixture(scope="module")
def prod(pools_env):
    given = {each: pool(count) for each, count in POOLS.items()}
    name = pools_env.cluster(pools_env.name(), workerPools=given, poolDrainTimeout=2)
    for each, count in POOLS.items():
        pools_env.wait_for_nodes(name, each, count)
    return name


@pytest.fixture
def guard(pools_env):
    """Create pods on a node, with a PodDisruptionBudget that blocks eviction; return their names."""
    guarded = []

    def put(node, app, count=1):
        pods = pools_env.machines.add_pods(node, count, app=app)
        pools_env.machines.add_budget(app, min_available=count)
        guarded.append(app)
        return pods

    yield put
    for app in guarded:
        pools_env.delete_workload(app)


def is_closed(node):
    return bool(node["spec"].get("unschedulable"))


def name_of(obj):
    return obj["metadata"]["name"]


def annotations(obj):
    return obj["metadata"].get("annotations") or {}


def test_a_drain_that_a_budget_blocks_is_reported_with_its_pods_and_deletes_nothing(pools_env, prod, guard):
    nodes, machines = pools_env.nodes_of(prod, "guarded"), pools_env.machines_of(prod, "guarded")
    pods = guard(nodes[0], "db", 2)

    pools_env.change_pools(prod, guarded=None)
    pools_env.wait_for_condition(prod, "PoolsDrained", "False", "DrainTimeout")

    def refused():
        status = pools_env.status(prod)
        blocking = status["workerPools"]["guarded"].get("blockingPods")
        return status if blocking and all(each["message"] for each in blocking) else None

    status = pools_env.wait_until(refused, "the evictions are refused")
    told = status["workerPools"]["guarded"]
    assert told["phase"] == "Blocked"
    assert [each["pod"] for each in told["blockingPods"]] == sorted(f"default/{each}" for each in pods)
    assert {each["node"] for each in told["blockingPods"]} == {name_of(nodes[0])}
    for each in told["blockingPods"]:
        assert "The disruption budget db needs 2 healthy pods and has 2 currently" in each["message"]
    condition = pools_env.condition(prod, "PoolsDrained")
    assert f"default/{pods[0]}" in condition["message"]
    assert "The disruption budget db" in condition["message"]
    _, said = pools_env.nodeyard("why", f"pool/{prod}/guarded")
    assert f"default/{pods[0]}" in said
    assert "The disruption budget db needs 2 healthy pods and has 2 currently" in said
    assert status["phase"] == "Ready"

    assert all(is_closed(pools_env.node(name_of(node))) for node in nodes)
    assert "deletionTimestamp" not in pools_env.deployment(prod, "guarded")["metadata"]
    assert pools_env.machines_of(prod, "guarded") == machines
    assert len(pools_env.machines.pods("db")) == 2
    pools_env.change_pools(prod, stays={"replicas": 2})
    pools_env.wait_for_nodes(prod, "stays", 2)

    pools_env.machines.remove_budget("db")
    pools_env.wait_until_removed(prod, "guarded")
    pools_env.wait_for_condition(prod, "PoolsDrained", "True")
    pools_env.wait_until(lambda: not pools_env.templates(prod, "guarded"), "its templates are collected")
    assert not any(pools_env.exists(f"/api/v1/nodes/{name_of(node)}") for node in nodes)


def test_a_pool_that_is_added_again_is_uncordoned_but_for_cordons_of_others(pools_env, prod, guard):
    closed, open_ = map(name_of, pools_env.nodes_of(prod, "returning"))
    machines = pools_env.machines_of(prod, "returning")
    pools_env.patch(f"/api/v1/nodes/{closed}", {"spec": {"unschedulable": True}})
    guard(open_, "web")
    pools_env.change_pools(prod, returning=None)
    pools_env.wait_until(
        lambda: all(POOL_DRAINING in annotations(pools_env.node(each)) for each in (closed, open_)), "cordons"
    )
    assert annotations(pools_env.node(open_))[names.CORDONED_BY] == f"{prod}/returning"

    def marks():
        marked = [pools_env.node(closed), pools_env.node(open_), pools_env.deployment(prod, "returning")]
        there = {key for each in marked for key in annotations(each)}
        return {POOL_DRAINING, names.CORDONED_BY, names.DRAIN_STARTED} & there

    pools_env.change_pools(prod, returning=pool(2))

    pools_env.wait_until(lambda: not is_closed(pools_env.node(open_)), "our cordon is undone")
    pools_env.wait_for_nodes(prod, "returning", 2)
    pools_env.wait_for_condition(prod, "PoolsDrained", "True")
    pools_env.wait_until(lambda: not marks(), "nothing tells of the drain any more")
    pools_env.wait_until(lambda: pools_env.count_events(prod, "NodeUncordoned"), "it is told")
    assert is_closed(pools_env.node(closed))
    assert pools_env.replicas(prod, "returning") == 2
    assert pools_env.machines_of(prod, "returning") == machines
    assert len(pools_env.machines.pods("web")) == 1

    written = pools_env.operator.write_counts()
    pools_env.change_pools(prod, returning={"displayName": "Returned"})
    pools_env.wait_until_ready(prod)

    def sent():
        return {each for each, count in pools_env.operator.write_counts().items() if count > written.get(each, 0)}

    pools_env.wait_until(sent, "the status is written")
    assert sent() == {f"patch {names.CLUSTER_PLURAL}.{names.GROUP}"}


def test_force_deletes_a_pool_regardless_of_budgets_and_a_pool_added_again_is_new(pools_env, prod, guard):
    (node,) = pools_env.nodes_of(prod, "forced")
    guard(node, "force")
    path = pools_env.path(prod, "machinedeployments", names.deployment(prod, "forced"))
    before = pools_env.rest.get(path)["metadata"]
    pools_env.patch(path, {"metadata": {"finalizers": [*before["finalizers"], HELD]}})

    pools_env.change(prod, poolDeletionPolicy="Force", nodes={"workerPools": {"forced": None}})
    pools_env.wait_until(lambda: not pools_env.exists(f"/api/v1/nodes/{name_of(node)}"), "its node is gone")
    pools_env.change_pools(prod, forced=pool(1))
    pools_env.wait_until(
        lambda: "is being deleted" in pools_env.pool(prod, "forced").get("message", ""), "it is waited for"
    )
    assert pools_env.rest.get(path)["metadata"]["uid"] == before["uid"]

    pools_env.wait_until(lambda: pools_env.rest.get(path)["metadata"]["finalizers"] == [HELD], "only the test holds it")
    pools_env.patch(path, {"metadata": {"finalizers": None}})
    pools_env.wait_for_nodes(prod, "forced", 1)
    assert pools_env.rest.get(path)["metadata"]["uid"] != before["uid"]


def test_under_orphan_a_pool_is_deleted_after_the_timeout_and_a_warning_says_so(pools_env, prod, guard):
    (node,) = pools_env.nodes_of(prod, "orphaned")
    guard(node, "orphan")

    pools_env.change(prod, poolDeletionPolicy="Orphan", nodes={"workerPools": {"orphaned": None}})

    pools_env.wait_until(
        lambda: pools_env.count_events(prod, "OrphanDeletesMachines"), "it is told that machines are deleted"
    )
    pools_env.wait_until_removed(prod, "orphaned")
    assert not pools_env.exists(f"/api/v1/nodes/{name_of(node)}")
