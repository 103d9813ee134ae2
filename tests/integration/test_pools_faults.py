"""Faults: a pool keeps its replicas in every resourceVersion, and no object is leaked."""

from itertools import dropwhile

import pytest
from tests.builders.pools import pool
from tests.builders.pools_env import History, PoolsEnv

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.testing.faults import Drop, Status, TruncateEvents
from nodeyard.testing.operators import Operators

TIER = "node.cluster.x-k8s.io/tier"
DEPLOYMENTS = "/machinedeployments"
PASSES = "nodeyard_reconciles_total"


@pytest.fixture(scope="module")
def own_pools_env(api, pool_crds, machines):
    """Shared by all tests of this file; each test starts its own operators."""
    own_pools_env = PoolsEnv(api, machines)
    yield own_pools_env
    own_pools_env.close()


@pytest.fixture(scope="module")
def five(api, own_pools_env):
    """A cluster with a pool of five, and the history of its MachineDeployments from the start."""
    name, operators = own_pools_env.name(), Operators(api, pytest.fail)
    history = History(own_pools_env, own_pools_env.path(name, "machinedeployments"))
    own_pools_env.node_class("five", docker={"image": "kindest/node:one"})
    operators(POOLS)
    own_pools_env.cluster(name, workerPools={"five": pool(5, nodeClass="five")})
    own_pools_env.wait_for_nodes(name, "five", 5)
    own_pools_env.wait_until_ready(name)
    operators.close()
    history.events()
    return name, history


def numbers_of(history, deployment):
    """Return spec.replicas of a MachineDeployment in each resourceVersion."""
    objects = [event["object"] for event in history.events()]
    return [each["spec"].get("replicas") for each in objects if each["metadata"]["name"] == deployment]


def assert_five(five):
    """Assert that it was created with 0, scaled to 5, and stayed at 5."""
    name, history = five
    numbers = numbers_of(history, names.deployment(name, "five"))
    assert numbers[0] == 0
    since = list(dropwhile(lambda number: number == 0, numbers))
    assert set(since) == {5}, numbers


def relabel(own_pools_env, name, tier):
    """Make an in-place change, which applies the whole MachineDeployment, and wait for it."""
    own_pools_env.change_pools(name, five={"labels": {TIER: tier}})

    def is_applied():
        template = own_pools_env.deployment(name, "five")["spec"]["template"]
        return template["metadata"]["labels"].get(TIER) == tier

    own_pools_env.wait_until(is_applied, f"the pool says {tier}")


def looked_again(own_pools_env, running):
    """Wait for a few more reconciles."""
    before = running.metric(PASSES)
    own_pools_env.wait_until(lambda: running.metric(PASSES) >= before + 6, "it has looked again")


def infrastructure(own_pools_env, name):
    return own_pools_env.deployment(name, "five")["spec"]["template"]["spec"]["infrastructureRef"]["name"]


def test_a_restarted_operator_and_a_resync_write_nothing_when_converged(own_pools_env, five, operator):
    name, _ = five
    running = operator("pools", resync=0.5).wait_until_leading()
    looked_again(own_pools_env, running)
    assert running.write_counts() == {}
    assert own_pools_env.wait_until_ready(name)["workerPools"]["five"]["ready"] == 5


def test_a_pool_that_stays_blocked_is_reported_once(own_pools_env, five, operator):
    name, _ = five
    running = operator("pools", resync=0.5).wait_until_leading()
    own_pools_env.change_pools(name, waiting=pool(1, nodeClass="never-made"))
    own_pools_env.wait_for_condition(name, "Accepted", "False", "NodeClassNotFound")
    own_pools_env.wait_until(lambda: own_pools_env.count_events(name, "NodeClassNotFound"), "it is told")
    looked_again(own_pools_env, running)
    written = running.write_counts()

    looked_again(own_pools_env, running)

    assert running.write_counts() == written
    assert own_pools_env.count_events(name, "NodeClassNotFound") == 1
    own_pools_env.change_pools(name, waiting=None)
    own_pools_env.wait_for_condition(name, "Accepted", "True")


def test_an_apply_a_restart_and_a_rotation_leave_the_number_as_it_is(own_pools_env, five, operator):
    name, _ = five
    first = operator("pools")
    relabel(own_pools_env, name, "applied")
    first.stop()
    second = operator("pools").wait_until_leading()
    relabel(own_pools_env, name, "restarted")
    before = infrastructure(own_pools_env, name)
    own_pools_env.change_class("five", docker={"image": "kindest/node:two"})
    own_pools_env.wait_until(lambda: infrastructure(own_pools_env, name) != before, "the pool is rolled")
    second.kill()

    operator("pools").wait_until_leading()
    relabel(own_pools_env, name, "rolled")

    assert_five(five)


def test_reads_that_fail_and_watches_that_break_scale_nothing(own_pools_env, five, operator, faults):
    name, _ = five
    failed = faults.add(Status(500), method="GET", path=DEPLOYMENTS, times=4)
    operator("pools", through=faults.kubeconfig).wait_until_leading()
    assert failed.hits == 4
    relabel(own_pools_env, name, "read")

    broken = faults.add(TruncateEvents(), path=f"{DEPLOYMENTS}.*watch=true", times=3)
    failed = faults.add(Status(500), method="GET", path=DEPLOYMENTS, times=6)
    for tier in ("broken", "again"):
        relabel(own_pools_env, name, tier)
    own_pools_env.wait_until(lambda: broken.hits, "a watch is broken")
    faults.clear()
    relabel(own_pools_env, name, "whole")

    assert_five(five)


def test_lost_responses_while_a_pool_is_created_keep_its_replicas(own_pools_env, five, operator, faults):
    name, history = five
    operator("pools", through=faults.kubeconfig).wait_until_leading()
    deployment = names.deployment(name, "made")
    lost = faults.add(Drop(after_sending=True), method="PATCH", path=f"{DEPLOYMENTS}/{deployment}", times=2)
    failed = faults.add(Status(500), method="PATCH", path=f"{DEPLOYMENTS}/{deployment}", times=3)

    own_pools_env.change_pools(name, made=pool(2))

    own_pools_env.machines.wait_for_nodes(name, deployment, 2)
    assert (lost.hits, failed.hits) == (2, 3)
    numbers = numbers_of(history, deployment)
    assert numbers == sorted(numbers)
    assert set(numbers) == {0, 2}


def test_a_kill_between_a_template_and_its_deployment_leaves_no_orphan(own_pools_env, five, operator, faults):
    name, _ = five
    own_pools_env.node_class("late", docker={"image": "kindest/node:one"})
    first = operator("pools", through=faults.kubeconfig).wait_until_leading()
    cut = faults.add(Drop(), method="PATCH", path=f"{DEPLOYMENTS}/{name}-pool-")
    own_pools_env.change_pools(name, late=pool(1, nodeClass="late"), never=pool(1, nodeClass="late"))
    own_pools_env.wait_until(
        lambda: cut.hits and all(len(own_pools_env.templates(name, each)) == 2 for each in ("late", "never")),
        "their templates are there, and their deployments about to be made",
    )
    first.kill()
    assert [own_pools_env.deployment(name, each) for each in ("late", "never")] == [None, None]
    own_pools_env.change_class("late", docker={"image": "kindest/node:two"})
    own_pools_env.change_pools(name, never=None)

    operator("pools").wait_until_leading()
    own_pools_env.wait_for_nodes(name, "late", 1)

    spec = own_pools_env.deployment(name, "late")["spec"]["template"]["spec"]
    used = {
        f"devmachinetemplates/{spec['infrastructureRef']['name']}",
        f"kubeadmconfigtemplates/{spec['bootstrap']['configRef']['name']}",
    }
    own_pools_env.wait_until(lambda: own_pools_env.templates(name, "late") == used, "no other template is left")
    own_pools_env.wait_until(
        lambda: not own_pools_env.templates(name, "never"), "no template of the other pool is left"
    )
