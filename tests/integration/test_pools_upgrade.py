"""Upgrade of the control plane and then of the pools; at the end only the LatticeCluster is deleted."""

import re

import pytest
from tests.builders.pools import pool
from tests.builders.pools_env import CLUSTERS, History

from nodeyard.capabilities.pools import names
from nodeyard.testing.rest import RestError

OLD, NEW, NEXT, LAST = "v1.34.0", "v1.35.0", "v1.36.0", "v1.37.0"
BUILD = f"{NEW}+build.1"
POOLS = ("alpha", "beta")


@pytest.fixture(scope="module")
def prod(pools_env):
    name = pools_env.cluster(pools_env.name(), version=OLD, workerPools={each: pool(1) for each in POOLS})
    for each in POOLS:
        pools_env.wait_for_nodes(name, each, 1)
    pools_env.wait_until_ready(name)
    return name


@pytest.fixture(scope="module")
def upgrade(pools_env, prod):
    """Return the condition while the control plane was held, and the history of all Machines."""
    history = History(pools_env, pools_env.path(prod, "machines"))
    pools_env.machines.hold_upgrade(prod)
    pools_env.change(prod, provider={"kubernetes": {"version": NEW}})
    pools_env.wait_for_condition(prod, "VersionCurrent", "False", "VersionWaits")
    held = pools_env.condition(prod, "VersionCurrent")["message"]
    _, planned = pools_env.nodeyard("plan")
    assert f"Waiting LatticeCluster {prod}" in planned
    assert f"VersionWaits: {held}" in planned
    assert "1 object waiting, nothing blocked" in planned
    assert [pools_env.pool(prod, each)["version"] for each in POOLS] == [OLD, OLD]
    pools_env.machines.release_upgrade(prod)
    pools_env.wait_for_condition(prod, "VersionCurrent", "True")
    for each in POOLS:
        pools_env.wait_for_nodes(prod, each, 1)
    return held, list(history.states())


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


def test_another_build_of_the_same_release_replaces_all_machines_and_is_done(pools_env, prod, upgrade):
    before = {each["metadata"]["name"] for each in pools_env.list(prod, "machines")}

    pools_env.change(prod, provider={"kubernetes": {"version": BUILD}})

    pools_env.wait_for_condition(prod, "VersionCurrent", "True")
    machines = pools_env.wait_until(
        lambda: (found := pools_env.list(prod, "machines")) and {each["spec"]["version"] for each in found} == {BUILD}
        and found, "all machines are of the build",
    )  # fmt: skip
    assert not before & {each["metadata"]["name"] for each in machines}
    for each in POOLS:
        pools_env.wait_for_nodes(prod, each, 1)
    pools_env.wait_until_ready(prod)


def test_the_control_plane_climbs_to_the_next_version_only_from_the_one_it_has_reached(pools_env, prod, upgrade):
    with pytest.raises(RestError, match=re.escape(f"at a time: {BUILD} cannot become {LAST}")):
        pools_env.change(prod, provider={"kubernetes": {"version": LAST}})
    pools_env.machines.hold_upgrade(prod)
    pools_env.change(prod, provider={"kubernetes": {"version": NEXT}})
    pools_env.wait_until(
        lambda: pools_env.control_plane(prod)["spec"]["version"] == NEXT, "the control plane shall climb"
    )

    pools_env.change(prod, provider={"kubernetes": {"version": LAST}})

    pools_env.wait_for_condition(prod, "VersionCurrent", "False", "VersionWaits")
    told = pools_env.condition(prod, "VersionCurrent")["message"]
    assert told.startswith(f"Upgrade to {LAST} is waiting for the control plane (now at {NEXT}): ")
    assert pools_env.control_plane(prod)["spec"]["version"] == NEXT


def test_a_self_managed_cluster_is_not_deleted_until_it_is_released(pools_env, prod, upgrade):
    contents = pools_env.written_objects(prod)
    pools_env.delete(prod)

    def is_refused():
        return pools_env.condition(prod, "Ready").get("reason") == "SelfManaged"

    pools_env.wait_until(is_refused, "the deletion is refused")
    assert pools_env.status(prod)["phase"] == "Deleting"
    assert pools_env.written_objects(prod) == contents

    pools_env.annotate(prod, {names.ORPHAN_ON_DELETE: "true"})
    pools_env.wait_until(lambda: not pools_env.exists(f"{CLUSTERS}/{prod}"), "it is let go of")
    assert pools_env.written_objects(prod) == contents
    assert all("deletionTimestamp" not in each["metadata"] for each in pools_env.list(prod, "clusters"))
