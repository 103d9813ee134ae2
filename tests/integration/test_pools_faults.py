"""Faults: a pool keeps its replicas in every resourceVersion, and no object is leaked."""

from itertools import dropwhile

import pytest
from tests.builders.lattices import History, Lattice
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.testing.faults import Drop, Status, TruncateEvents
from nodeyard.testing.operators import Operators

TIER = "node.cluster.x-k8s.io/tier"
DEPLOYMENTS = "/machinedeployments"
PASSES = "nodeyard_reconciles_total"


@pytest.fixture(scope="module")
def lattice(api, lattice_kinds, machines):
    """Shared by all tests of this file; each test starts its own operators."""
    lattice = Lattice(api, machines)
    yield lattice
    lattice.close()


@pytest.fixture(scope="module")
def five(api, lattice):
    """A cluster with a pool of five, and the history of its MachineDeployments from the start."""
    name, operators = lattice.name(), Operators(api, pytest.fail)
    history = History(lattice, lattice.path(name, "machinedeployments"))
    lattice.node_class("five", docker={"image": "kindest/node:one"})
    operators(POOLS)
    lattice.cluster(name, workerPools={"five": pool(5, nodeClass="five")})
    lattice.joined(name, "five", 5)
    lattice.ready(name)
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


def relabel(lattice, name, tier):
    """Make an in-place change, which applies the whole MachineDeployment, and wait for it."""
    lattice.change_pools(name, five={"labels": {TIER: tier}})

    def is_applied():
        template = lattice.deployment(name, "five")["spec"]["template"]
        return template["metadata"]["labels"].get(TIER) == tier

    lattice.until(is_applied, f"the pool says {tier}")


def looked_again(lattice, running):
    """Wait for a few more reconciles."""
    before = running.metric(PASSES)
    lattice.until(lambda: running.metric(PASSES) >= before + 6, "it has looked again")


def infrastructure(lattice, name):
    return lattice.deployment(name, "five")["spec"]["template"]["spec"]["infrastructureRef"]["name"]


def test_an_operator_that_starts_on_what_is_done_and_looks_again_writes_nothing(lattice, five, operator):
    name, _ = five
    running = operator("pools", resync=0.5).leading()
    looked_again(lattice, running)
    assert running.written() == {}
    assert lattice.ready(name)["workerPools"]["five"]["ready"] == 5


def test_a_pool_that_stays_blocked_is_told_of_once_and_not_with_every_look(lattice, five, operator):
    name, _ = five
    running = operator("pools", resync=0.5).leading()
    lattice.change_pools(name, waiting=pool(1, nodeClass="never-made"))
    lattice.conditioned(name, "Accepted", "False", "NodeClassNotFound")
    lattice.until(lambda: lattice.told(name, "NodeClassNotFound"), "it is told")
    looked_again(lattice, running)
    written = running.written()

    looked_again(lattice, running)

    assert running.written() == written
    assert lattice.told(name, "NodeClassNotFound") == 1
    lattice.change_pools(name, waiting=None)
    lattice.conditioned(name, "Accepted", "True")


def test_an_apply_a_restart_and_a_rotation_leave_the_number_as_it_is(lattice, five, operator):
    name, _ = five
    first = operator("pools")
    relabel(lattice, name, "applied")
    first.stop()
    second = operator("pools").leading()
    relabel(lattice, name, "restarted")
    before = infrastructure(lattice, name)
    lattice.change_class("five", docker={"image": "kindest/node:two"})
    lattice.until(lambda: infrastructure(lattice, name) != before, "the pool is rolled")
    second.kill()

    operator("pools").leading()
    relabel(lattice, name, "rolled")

    assert_five(five)


def test_reads_that_fail_and_watches_that_break_scale_nothing(lattice, five, operator, faults):
    name, _ = five
    failed = faults.add(Status(500), method="GET", path=DEPLOYMENTS, times=4)
    operator("pools", through=faults.kubeconfig).leading()
    assert failed.hits == 4
    relabel(lattice, name, "read")

    broken = faults.add(TruncateEvents(), path=f"{DEPLOYMENTS}.*watch=true", times=3)
    failed = faults.add(Status(500), method="GET", path=DEPLOYMENTS, times=6)
    for tier in ("broken", "again"):
        relabel(lattice, name, tier)
    lattice.until(lambda: broken.hits, "a watch is broken")
    faults.clear()
    relabel(lattice, name, "whole")

    assert_five(five)


def test_answers_that_are_lost_while_a_pool_is_made_leave_it_with_its_number(lattice, five, operator, faults):
    name, history = five
    operator("pools", through=faults.kubeconfig).leading()
    deployment = names.deployment(name, "made")
    lost = faults.add(Drop(after_sending=True), method="PATCH", path=f"{DEPLOYMENTS}/{deployment}", times=2)
    failed = faults.add(Status(500), method="PATCH", path=f"{DEPLOYMENTS}/{deployment}", times=3)

    lattice.change_pools(name, made=pool(2))

    lattice.machines.wait_for_nodes(name, deployment, 2)
    assert (lost.hits, failed.hits) == (2, 3)
    numbers = numbers_of(history, deployment)
    assert numbers == sorted(numbers)
    assert set(numbers) == {0, 2}


def test_killed_between_a_template_and_its_deployment_leaves_nothing_behind(lattice, five, operator, faults):
    name, _ = five
    lattice.node_class("late", docker={"image": "kindest/node:one"})
    first = operator("pools", through=faults.kubeconfig).leading()
    cut = faults.add(Drop(), method="PATCH", path=f"{DEPLOYMENTS}/{name}-pool-")
    lattice.change_pools(name, late=pool(1, nodeClass="late"), never=pool(1, nodeClass="late"))
    lattice.until(
        lambda: cut.hits and all(len(lattice.templates(name, each)) == 2 for each in ("late", "never")),
        "their templates are there, and their deployments about to be made",
    )
    first.kill()
    assert [lattice.deployment(name, each) for each in ("late", "never")] == [None, None]
    lattice.change_class("late", docker={"image": "kindest/node:two"})
    lattice.change_pools(name, never=None)

    operator("pools").leading()
    lattice.joined(name, "late", 1)

    spec = lattice.deployment(name, "late")["spec"]["template"]["spec"]
    used = {
        f"devmachinetemplates/{spec['infrastructureRef']['name']}",
        f"kubeadmconfigtemplates/{spec['bootstrap']['configRef']['name']}",
    }
    lattice.until(lambda: lattice.templates(name, "late") == used, "no other template is left")
    lattice.until(lambda: not lattice.templates(name, "never"), "no template of the other pool is left")
