"""The brake holds a change that exceeds the limit, reports it in conditions and events, and one approval releases it.

The operator may disrupt no node here. Another leader would hold nothing, so these tests have their own file.
"""

import re
from datetime import timedelta

import pytest
from tests.builders.pools import pool
from tests.builders.pools_env import CLASSES, CLUSTERS

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import removals
from nodeyard.kube.names import APPROVE
from nodeyard.plan.brake import Limit
from nodeyard.testing.embedded import EmbeddedServer

NEEDS_APPROVAL = "NeedsApproval"
OLD, NEW = "v1.34.0", "v1.35.0"


@pytest.fixture
def braked(own_pools_env, operator, monkeypatch):
    """LatticeClusters with an operator that needs approval to disrupt a single node."""
    monkeypatch.setattr(removals, "SETTLE", timedelta(seconds=1))
    operator(POOLS, limit=Limit(nodes=0, percent=0))
    return own_pools_env


@pytest.fixture
def elsewhere():
    """A second API server, without the Cluster API objects."""
    with EmbeddedServer() as server:
        yield server


def with_two_pools(own_pools_env, **spec):
    name = own_pools_env.cluster(own_pools_env.name("held"), workerPools={"a": pool(1), "b": pool(1)}, **spec)
    for each in ("a", "b"):
        own_pools_env.wait_for_nodes(name, each, 1)
    return name


def held(own_pools_env, name):
    """Wait until a plan is held; return the id in its condition and event."""
    own_pools_env.wait_for_condition(name, "Ready", "False", NEEDS_APPROVAL)
    message = own_pools_env.condition(name, "Ready")["message"]
    (id,) = re.findall(r"`nodeyard approve ([\w-]+)` to proceed", message)
    own_pools_env.wait_until(lambda: own_pools_env.count_events(name, NEEDS_APPROVAL), "an event tells of it")
    return id


def approve(own_pools_env, id):
    code, said = own_pools_env.nodeyard("approve", id)
    assert code == 0, said


def test_a_pool_that_is_taken_out_keeps_its_nodes_until_one_approval_drains_and_deletes_it(braked):
    name = with_two_pools(braked)
    braked.wait_until_ready(name)
    before = braked.machines_of(name, "b")

    braked.change_pools(name, b=None)

    id = held(braked, name)
    assert names.DRAIN_STARTED not in braked.deployment(name, "b")["metadata"].get("annotations", {})
    (node,) = braked.nodes_of(name, "b")
    assert not node["spec"].get("unschedulable")
    assert braked.machines_of(name, "b") == before
    assert braked.pool(name, "b")["phase"] == "Blocked"

    approve(braked, id)

    braked.wait_until_removed(name, "b")
    braked.wait_until_ready(name)
    assert len(braked.nodes_of(name, "a")) == 1
    assert braked.count_events(name, NEEDS_APPROVAL) == 1


def test_a_control_plane_keeps_its_members_until_scaling_it_down_is_approved_whatever_the_limit(
    own_pools_env, operator
):
    operator(POOLS)
    name = own_pools_env.cluster(own_pools_env.name("held"), controlPlane=3, workerPools={"a": pool(1)})
    own_pools_env.wait_until_ready(name)

    def members():
        return own_pools_env.control_plane(name)["spec"]["replicas"]

    own_pools_env.patch(f"{CLUSTERS}/{name}", {"spec": {"nodes": {"controlPlane": 1}}})

    first = held(own_pools_env, name)
    assert "held: 2 of " in own_pools_env.condition(name, "Ready")["message"]
    own_pools_env.change_pools(name, a=pool(2))
    own_pools_env.wait_for_nodes(name, "a", 2)
    assert members() == 3
    id = own_pools_env.wait_until(
        lambda: (found := held(own_pools_env, name)) != first and found, "the next edit needs an approval of its own"
    )

    approve(own_pools_env, id)

    own_pools_env.wait_until(lambda: members() == 1, "it is scaled")
    own_pools_env.wait_until_ready(name)
    own_pools_env.wait_until(
        lambda: APPROVE not in own_pools_env.get(name)["metadata"]["annotations"], "the approval ends with the scaling"
    )


def test_an_approval_covers_no_other_change_of_the_same_generation(braked):
    """While the scale-down of one pool waits, somebody scales the other pool by hand."""
    name = braked.cluster(braked.name("held"), workerPools={"a": pool(2), "b": pool(1)})
    for each, number in (("a", 2), ("b", 1)):
        braked.wait_for_nodes(name, each, number)
    braked.wait_until_ready(name)
    braked.change_pools(name, a=pool(1))
    read = held(braked, name)
    path = braked.path(name, "machinedeployments", f"{name}-pool-b")
    braked.patch(path, {"spec": {"replicas": 3}}, "kubectl")
    both = braked.wait_until(
        lambda: (found := held(braked, name)) != read and found, "scaling back needs an approval of its own"
    )

    approve(braked, read)

    braked.wait_for_nodes(name, "a", 1)
    other = braked.wait_until(lambda: (found := held(braked, name)) != both and found, "the other change is still held")
    assert braked.replicas(name, "b") == 3
    assert sorted([read, other]) == both.split("-")

    approve(braked, other)

    braked.wait_for_nodes(name, "b", 1)
    braked.wait_until_ready(name)


def test_an_upgrade_is_counted_over_all_its_steps_and_goes_with_one_approval(own_pools_env, operator):
    """No step exceeds the limit: the control plane and the pools follow one after the other, one node each."""
    operator(POOLS, limit=Limit(nodes=2, percent=0))
    node_class = own_pools_env.node_class(own_pools_env.name("class"), docker={"image": "kindest/node:one"})
    pools = {each: pool(1, nodeClass=node_class) for each in ("a", "b")}
    name = own_pools_env.cluster(own_pools_env.name("held"), version=OLD, workerPools=pools)
    for each in pools:
        own_pools_env.wait_for_nodes(name, each, 1)
    own_pools_env.wait_until_ready(name)

    own_pools_env.change(name, provider={"kubernetes": {"version": NEW}})

    id = held(own_pools_env, name)
    assert "held: 3 of " in own_pools_env.condition(name, "Ready")["message"]
    assert own_pools_env.control_plane(name)["spec"]["version"] == OLD

    approve(own_pools_env, id)

    own_pools_env.wait_until(
        lambda: [own_pools_env.pool(name, each)["version"] for each in pools] == [NEW, NEW], "all run the version"
    )
    own_pools_env.wait_for_condition(name, "VersionCurrent", "True")
    own_pools_env.wait_until_ready(name)
    own_pools_env.wait_until(
        lambda: APPROVE not in own_pools_env.get(name)["metadata"]["annotations"], "the approval ends with the upgrade"
    )
    assert own_pools_env.count_events(name, NEEDS_APPROVAL) == 1


def test_a_cluster_that_is_deleted_keeps_its_machines_until_one_approval_takes_it_all(braked, elsewhere):
    name = with_two_pools(braked, pivot="Never")
    braked.set_kubeconfig(name, elsewhere.config)
    braked.wait_until(lambda: braked.status(name).get("pivoted") is False, "it is known to be another cluster")
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

    braked.wait_until(lambda: not braked.exists(f"{CLUSTERS}/{name}"), "it is gone")
    assert not braked.exists(f"/api/v1/namespaces/{names.namespace(name)}")
    assert braked.count_events(name, NEEDS_APPROVAL) == 1


def test_an_edit_of_a_class_is_counted_over_all_clusters_and_goes_with_one_approval(own_pools_env, operator):
    """Neither cluster alone exceeds the limit."""
    operator(POOLS, limit=Limit(nodes=1, percent=0))
    node_class = own_pools_env.node_class(own_pools_env.name("class"), docker={"image": "kindest/node:one"})
    pools = {"a": pool(1, nodeClass=node_class)}
    clusters = [own_pools_env.cluster(own_pools_env.name("held"), workerPools=pools) for _ in range(2)]
    for each in clusters:
        own_pools_env.wait_for_nodes(each, "a", 1)
        own_pools_env.wait_until_ready(each)
    before = {each: own_pools_env.machines_of(each, "a") for each in clusters}

    own_pools_env.change_class(node_class, docker={"image": "kindest/node:two"})

    (id,) = {held(own_pools_env, each) for each in clusters}
    assert {each: own_pools_env.machines_of(each, "a") for each in clusters} == before
    assert all("held: 2 of " in own_pools_env.condition(each, "Ready")["message"] for each in clusters)

    def held_on_class():
        conditions = own_pools_env.rest.get(f"{CLASSES}/{node_class}")["status"]["conditions"]
        return [each["message"] for each in conditions if each["type"] == "Held"]

    own_pools_env.wait_until(lambda: [id in each for each in held_on_class()] == [True], "the class is Held")

    approve(own_pools_env, id)
    own_pools_env.wait_until(lambda: not held_on_class(), "nothing of the class is held any more")

    for each in clusters:
        own_pools_env.wait_until(
            lambda each=each: own_pools_env.machines_of(each, "a") != before[each], f"{each} follows the class"
        )
        own_pools_env.wait_for_nodes(each, "a", 1)
        own_pools_env.wait_until_ready(each)
    own_pools_env.wait_until(
        lambda: APPROVE not in own_pools_env.rest.get(f"{CLASSES}/{node_class}")["metadata"]["annotations"],
        "the approval ends with the edit",
    )
