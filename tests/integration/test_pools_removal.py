"""Removal of a pool with Drain, Orphan and Force, and its cancellation, on both servers."""

import pytest
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names
from nodeyard.kube.names import POOL_DRAINING

HELD = "nodeyard.test/held"
POOLS = {"stays": 1, "guarded": 2, "returning": 2, "forced": 1, "orphaned": 1}


@pytest.fixture(scope="module")
def prod(lattices):
    given = {each: pool(count) for each, count in POOLS.items()}
    name = lattices.cluster(lattices.name(), workerPools=given, poolDrainTimeout=2)
    for each, count in POOLS.items():
        lattices.joined(name, each, count)
    return name


@pytest.fixture
def guard(lattices):
    """Create pods on a node, with a PodDisruptionBudget that blocks eviction; return their names."""
    guarded = []

    def put(node, app, count=1):
        pods = lattices.machines.add_pods(node, count, app=app)
        lattices.machines.add_budget(app, min_available=count)
        guarded.append(app)
        return pods

    yield put
    for app in guarded:
        lattices.release(app)


def is_closed(node):
    return bool(node["spec"].get("unschedulable"))


def name_of(obj):
    return obj["metadata"]["name"]


def annotations(obj):
    return obj["metadata"].get("annotations") or {}


def test_a_drain_that_a_budget_blocks_is_told_with_its_pods_and_takes_nothing_away(lattices, prod, guard):
    nodes, machines = lattices.nodes_of(prod, "guarded"), lattices.machines_of(prod, "guarded")
    pods = guard(nodes[0], "db", 2)

    lattices.change_pools(prod, guarded=None)
    lattices.conditioned(prod, "PoolsDrained", "False", "DrainTimeout")

    def refused():
        status = lattices.status(prod)
        blocking = status["workerPools"]["guarded"].get("blockingPods")
        return status if blocking and all(each["message"] for each in blocking) else None

    status = lattices.until(refused, "the evictions are refused")
    told = status["workerPools"]["guarded"]
    assert told["phase"] == "Blocked"
    assert [each["pod"] for each in told["blockingPods"]] == sorted(f"default/{each}" for each in pods)
    assert {each["node"] for each in told["blockingPods"]} == {name_of(nodes[0])}
    for each in told["blockingPods"]:
        assert "The disruption budget db needs 2 healthy pods and has 2 currently" in each["message"]
    condition = lattices.condition(prod, "PoolsDrained")
    assert f"default/{pods[0]}" in condition["message"]
    assert "The disruption budget db" in condition["message"]
    _, said = lattices.nodeyard("why", f"pool/{prod}/guarded")
    assert f"default/{pods[0]}" in said
    assert "The disruption budget db needs 2 healthy pods and has 2 currently" in said
    assert status["phase"] == "Ready"

    assert all(is_closed(lattices.node(name_of(node))) for node in nodes)
    assert "deletionTimestamp" not in lattices.deployment(prod, "guarded")["metadata"]
    assert lattices.machines_of(prod, "guarded") == machines
    assert len(lattices.machines.pods("db")) == 2
    lattices.change_pools(prod, stays={"replicas": 2})
    lattices.joined(prod, "stays", 2)

    lattices.machines.remove_budget("db")
    lattices.gone(prod, "guarded")
    lattices.conditioned(prod, "PoolsDrained", "True")
    lattices.until(lambda: not lattices.templates(prod, "guarded"), "its templates are collected")
    assert not any(lattices.exists(f"/api/v1/nodes/{name_of(node)}") for node in nodes)


def test_a_pool_that_comes_back_is_opened_again_but_for_what_others_closed(lattices, prod, guard):
    closed, open_ = map(name_of, lattices.nodes_of(prod, "returning"))
    machines = lattices.machines_of(prod, "returning")
    lattices.patch(f"/api/v1/nodes/{closed}", {"spec": {"unschedulable": True}})
    guard(open_, "web")
    lattices.change_pools(prod, returning=None)
    lattices.until(
        lambda: all(POOL_DRAINING in annotations(lattices.node(each)) for each in (closed, open_)), "cordons"
    )
    assert annotations(lattices.node(open_))[names.CORDONED_BY] == f"{prod}/returning"

    def marks():
        marked = [lattices.node(closed), lattices.node(open_), lattices.deployment(prod, "returning")]
        there = {key for each in marked for key in annotations(each)}
        return {POOL_DRAINING, names.CORDONED_BY, names.DRAIN_STARTED} & there

    lattices.change_pools(prod, returning=pool(2))

    lattices.until(lambda: not is_closed(lattices.node(open_)), "our cordon is undone")
    lattices.joined(prod, "returning", 2)
    lattices.conditioned(prod, "PoolsDrained", "True")
    lattices.until(lambda: not marks(), "nothing tells of the drain any more")
    lattices.until(lambda: lattices.told(prod, "NodeUncordoned"), "it is told")
    assert is_closed(lattices.node(closed))
    assert lattices.replicas(prod, "returning") == 2
    assert lattices.machines_of(prod, "returning") == machines
    assert len(lattices.machines.pods("web")) == 1

    written = lattices.operator.written()
    lattices.change_pools(prod, returning={"displayName": "Returned"})
    lattices.ready(prod)

    def sent():
        return {each for each, count in lattices.operator.written().items() if count > written.get(each, 0)}

    lattices.until(sent, "the status is written")
    assert sent() == {f"patch {names.CLUSTER_PLURAL}.{names.GROUP}"}


def test_forced_out_a_pool_goes_whatever_its_budgets_say_and_what_comes_back_is_another(lattices, prod, guard):
    (node,) = lattices.nodes_of(prod, "forced")
    guard(node, "force")
    path = lattices.path(prod, "machinedeployments", names.deployment(prod, "forced"))
    before = lattices.rest.get(path)["metadata"]
    lattices.patch(path, {"metadata": {"finalizers": [*before["finalizers"], HELD]}})

    lattices.change(prod, poolDeletionPolicy="Force", nodes={"workerPools": {"forced": None}})
    lattices.until(lambda: not lattices.exists(f"/api/v1/nodes/{name_of(node)}"), "its node is gone")
    lattices.change_pools(prod, forced=pool(1))
    lattices.until(lambda: "is being deleted" in lattices.pool(prod, "forced").get("message", ""), "it is waited for")
    assert lattices.rest.get(path)["metadata"]["uid"] == before["uid"]

    lattices.until(lambda: lattices.rest.get(path)["metadata"]["finalizers"] == [HELD], "only the test holds it")
    lattices.patch(path, {"metadata": {"finalizers": None}})
    lattices.joined(prod, "forced", 1)
    assert lattices.rest.get(path)["metadata"]["uid"] != before["uid"]


def test_left_to_cluster_api_a_pool_goes_after_the_timeout_and_a_warning_says_so(lattices, prod, guard):
    (node,) = lattices.nodes_of(prod, "orphaned")
    guard(node, "orphan")

    lattices.change(prod, poolDeletionPolicy="Orphan", nodes={"workerPools": {"orphaned": None}})

    lattices.until(lambda: lattices.told(prod, "OrphanDeletesMachines"), "it is told that machines are deleted")
    lattices.gone(prod, "orphaned")
    assert not lattices.exists(f"/api/v1/nodes/{name_of(node)}")
