"""Upgrade of the control plane and then of the pools; at the end only the LatticeCluster is deleted."""

import re

import pytest
from tests.builders.lattices import CLUSTERS, History
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names
from nodeyard.testing.rest import RestError

OLD, NEW, NEXT, LAST = "v1.34.0", "v1.35.0", "v1.36.0", "v1.37.0"
BUILD = f"{NEW}+build.1"
POOLS = ("alpha", "beta")


@pytest.fixture(scope="module")
def prod(lattices):
    name = lattices.cluster(lattices.name(), version=OLD, workerPools={each: pool(1) for each in POOLS})
    for each in POOLS:
        lattices.joined(name, each, 1)
    lattices.ready(name)
    return name


@pytest.fixture(scope="module")
def upgrade(lattices, prod):
    """Return the condition while the control plane was held, and the history of all Machines."""
    history = History(lattices, lattices.path(prod, "machines"))
    lattices.machines.hold_upgrade(prod)
    lattices.change(prod, provider={"kubernetes": {"version": NEW}})
    lattices.conditioned(prod, "VersionCurrent", "False", "VersionWaits")
    held = lattices.condition(prod, "VersionCurrent")["message"]
    _, planned = lattices.nodeyard("plan")
    assert f"Waiting LatticeCluster {prod}" in planned
    assert f"VersionWaits: {held}" in planned
    assert "1 object waiting, nothing blocked" in planned
    assert [lattices.pool(prod, each)["version"] for each in POOLS] == [OLD, OLD]
    lattices.machines.release_upgrade(prod)
    lattices.conditioned(prod, "VersionCurrent", "True")
    for each in POOLS:
        lattices.joined(prod, each, 1)
    return held, list(history.moments())


def versions(machines, deployment=""):
    """Return the versions of the Machines of a pool or of the control plane."""
    return {
        each["spec"]["version"]
        for each in machines
        if (each["metadata"]["labels"].get(names.DEPLOYMENT_NAME_LABEL) or "") == deployment
    }


def test_pools_wait_for_the_control_plane_and_the_condition_says_so(upgrade):
    held, _ = upgrade
    assert held == f"Upgrade to {NEW} is waiting for the control plane: 0 of 1 Machines run it"


def test_no_kubelet_is_ever_newer_than_any_machine_of_the_control_plane(prod, upgrade):
    _, moments = upgrade
    for machines in moments:
        workers = [version for each in POOLS for version in versions(machines, names.deployment(prod, each))]
        assert NEW not in workers or versions(machines) == {NEW}
    for each in POOLS:
        assert versions(moments[-1], names.deployment(prod, each)) == {NEW}


def test_the_second_pool_begins_when_the_first_is_done(prod, upgrade):
    _, moments = upgrade
    first, second = (names.deployment(prod, each) for each in POOLS)
    begun = [versions(machines, first) for machines in moments if NEW in versions(machines, second)]
    assert begun
    assert all(each == {NEW} for each in begun)


def test_another_build_of_the_same_release_replaces_all_machines_and_is_done(lattices, prod, upgrade):
    before = {each["metadata"]["name"] for each in lattices.listed(prod, "machines")}

    lattices.change(prod, provider={"kubernetes": {"version": BUILD}})

    lattices.conditioned(prod, "VersionCurrent", "True")
    machines = lattices.until(
        lambda: (found := lattices.listed(prod, "machines")) and {each["spec"]["version"] for each in found} == {BUILD}
        and found, "all machines are of the build",
    )  # fmt: skip
    assert not before & {each["metadata"]["name"] for each in machines}
    for each in POOLS:
        lattices.joined(prod, each, 1)
    lattices.ready(prod)


def test_the_control_plane_climbs_to_the_next_version_only_from_the_one_it_has_reached(lattices, prod, upgrade):
    with pytest.raises(RestError, match=re.escape(f"at a time: {BUILD} cannot become {LAST}")):
        lattices.change(prod, provider={"kubernetes": {"version": LAST}})
    lattices.machines.hold_upgrade(prod)
    lattices.change(prod, provider={"kubernetes": {"version": NEXT}})
    lattices.until(lambda: lattices.control_plane(prod)["spec"]["version"] == NEXT, "the control plane shall climb")

    lattices.change(prod, provider={"kubernetes": {"version": LAST}})

    lattices.conditioned(prod, "VersionCurrent", "False", "VersionWaits")
    told = lattices.condition(prod, "VersionCurrent")["message"]
    assert told.startswith(f"Upgrade to {LAST} is waiting for the control plane (now at {NEXT}): ")
    assert lattices.control_plane(prod)["spec"]["version"] == NEXT


def test_a_cluster_that_manages_itself_is_not_deleted_until_it_is_let_go_of(lattices, prod, upgrade):
    contents = lattices.contents(prod)
    lattices.delete(prod)

    def is_refused():
        return lattices.condition(prod, "Ready").get("reason") == "SelfManaged"

    lattices.until(is_refused, "the deletion is refused")
    assert lattices.status(prod)["phase"] == "Deleting"
    assert lattices.contents(prod) == contents

    lattices.annotate(prod, {names.ORPHAN_ON_DELETE: "true"})
    lattices.until(lambda: not lattices.exists(f"{CLUSTERS}/{prod}"), "it is let go of")
    assert lattices.contents(prod) == contents
    assert all("deletionTimestamp" not in each["metadata"] for each in lattices.listed(prod, "clusters"))
