"""Upgrades: the control plane first, then pool by pool, and what stops them."""

from dataclasses import replace

import pytest

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.blocks import VersionSkew
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.planning.versions import KubeVersion, minors_between, parse_version
from nodeyard.plan.brake import Limit, brake
from nodeyard.runtime.annotations import running_approvals

from ....builders.pool_objects import changed, running, settled, with_deployment, with_management, with_replicas
from ....builders.pools import NOW, cluster, machine, pool

POOLS = {"a": pool(2), "b": pool(1), "c": pool(0)}
OLD, NEW = "v1.32.0", "v1.33.1"


def world(**given):
    """Everything runs the old version, and the spec has the new one."""
    before = running(cluster("x", version=OLD, workerPools=POOLS))
    return replace(before, cluster=cluster("x", version=NEW, workerPools=POOLS, **given))


def with_control_plane(snapshot, version):
    live = changed(snapshot.management.control_plane, "spec.version", version)
    return with_management(snapshot, control_plane=settled(live, version=version))


def told(snapshot, pool_id, version, **status):
    """Set the version of a pool, with counters that report it as complete."""
    live = changed(snapshot.management.deployments[f"x-pool-{pool_id}"], "spec.template.spec.version", version)
    return with_deployment(snapshot, settled(live, **status))


def on_version(snapshot, pool_id, version, **status):
    """Set the version of a pool's Machines."""
    moved = [
        machine(each.metadata.name, each.deployment, node=each.node, spec={"version": version})
        if each.deployment == f"x-pool-{pool_id}"
        else each
        for each in snapshot.management.machines
    ]
    return with_management(told(snapshot, pool_id, version, **status), machines=moved)


def versions(snapshot):
    """Return the versions that a plan sets, by object."""
    planned = plan(snapshot, NOW)
    found = {}
    for action in planned.plan.actions:
        for change in action.diff:
            if change.path in ("spec.version", "spec.template.spec.version"):
                found[action.object.name] = change.to
    return found


def stop(snapshot):
    return {each.reason: each.facts for each in plan(snapshot, NOW).plan.blocked}


def test_the_control_plane_goes_first_and_alone():
    assert versions(world()) == {"x-control-plane": NEW}
    assert "waiting for the control plane" in stop(world())["VersionWaits"].text()


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ("v1.33.0-rc.1", "v1.33.0"),
        ("v1.33.0-rc.1", "v1.33.0-rc.2"),
        ("v1.33.0", "v1.33.0+build.1"),
        ("v1.33.0+build.1", "v1.33.0+build.2"),
    ],
)
def test_another_pre_release_or_build_of_a_release_is_another_version(present, wanted):
    before = running(cluster("x", version=present, workerPools=POOLS))
    asked = replace(before, cluster=cluster("x", version=wanted, workerPools=POOLS))

    assert versions(before) == {}
    assert versions(asked) == {"x-control-plane": wanted}
    ready = with_control_plane(asked, wanted)
    assert versions(ready) == {"x-pool-a": wanted}
    assert versions(on_version(ready, "a", wanted)) == {"x-pool-b": wanted}


def with_member(asked):
    """Add a Machine of the control plane."""
    label = {"labels": {names.CONTROL_PLANE_LABEL: ""}}
    member = machine("cp", "", node="cp", metadata=label, spec={"clusterName": "x", "version": OLD})
    return with_management(asked, machines=[*asked.management.machines, member])


def test_an_upgrade_counts_for_the_brake_as_one_edit_of_all_its_machines():
    """No pool alone exceeds the limit; the approval of the first step is that of the others."""
    asked = with_member(world())

    first = brake(plan(asked, NOW).plan, Limit(nodes=3, percent=0), 4)
    assert [each.object.name for each in first.held.actions] == ["x-control-plane"]
    assert any("held: 4 of 4 managed nodes" in each.facts.text() for each in first.now.blocked)
    assert brake(plan(asked, NOW).plan, Limit(nodes=4, percent=0), 4).held is None

    ready = with_control_plane(asked, NEW)
    assert brake(plan(ready, NOW).plan, Limit(nodes=3, percent=0), 4).held.id == first.held.id
    assert brake(plan(ready, NOW).plan, Limit(nodes=3, percent=0), 4, [first.held.id]).held is None


def test_an_upgrade_approval_is_kept_until_its_end_and_covers_nothing_else():
    asked = with_member(world())
    approved = brake(plan(asked, NOW).plan, Limit(nodes=0, percent=0), 4).held.id
    ready = with_control_plane(asked, NEW)
    grown = with_replicas(ready.management.deployments["x-pool-b"], 40)
    drifted = brake(plan(with_deployment(ready, grown), NOW).plan, Limit(nodes=0, percent=0), 4, [approved])

    assert [each.reason for each in drifted.held.actions] == ["PoolScaled"]
    assert versions(moving(asked)) == {}
    assert running_approvals(plan(moving(asked), NOW)) == {approved}
    assert approved not in running_approvals(plan(on_version(upgraded(ready), "c", NEW), NOW))


def moving(asked):
    """Return the world while the control plane is being upgraded: nothing is written."""
    changed = with_control_plane(asked, NEW)
    return with_management(changed, control_plane=settled(changed.management.control_plane, version=OLD))


def upgraded(ready):
    return on_version(on_version(ready, "a", NEW), "b", NEW)


def test_the_pools_wait_until_every_replica_of_the_control_plane_is_there():
    assert versions(moving(world())) == {}


def test_a_control_plane_without_pools_is_waited_for_too():
    bare = replace(world(), cluster=cluster("x", version=NEW, workerPools={}))
    bare = with_management(bare, deployments={}, machines=[])
    moving = with_management(bare, control_plane=changed(bare.management.control_plane, "spec.version", NEW))
    assert "waiting for the control plane" in stop(bare)["VersionWaits"].text()
    assert "waiting for the control plane" in stop(moving)["VersionWaits"].text()
    assert "VersionWaits" not in stop(with_control_plane(bare, NEW))


def test_pools_follow_one_at_a_time_in_the_order_of_names():
    ready = with_control_plane(world(), NEW)
    assert versions(ready) == {"x-pool-a": NEW}
    assert versions(on_version(ready, "a", NEW, upToDateReplicas=1)) == {}
    assert versions(on_version(ready, "a", NEW)) == {"x-pool-b": NEW}


def test_outdated_counters_let_no_pool_pass():
    ready = with_control_plane(world(), NEW)
    assert versions(told(ready, "a", NEW)) == {}
    assert stop(told(ready, "a", NEW))["VersionWaits"].pool == "a"


def test_an_empty_pool_does_not_hold_the_next_one_up():
    ready = on_version(on_version(with_control_plane(world(), NEW), "a", NEW), "b", NEW)
    assert versions(ready) == {"x-pool-c": NEW}
    assert versions(on_version(ready, "c", NEW)) == {}
    assert stop(on_version(ready, "c", NEW)) == {}


def test_the_version_is_not_everywhere_before_the_last_machine_has_it():
    ready = with_control_plane(world(), NEW)
    for each in POOLS:
        ready = on_version(ready, each, NEW)
    before = [machine(f"x-pool-b-{OLD}", "x-pool-b", spec={"version": OLD})]
    last = on_version(on_version(with_control_plane(world(), NEW), "a", NEW), "c", NEW)
    assert versions(last) == {"x-pool-b": NEW}
    assert stop(last)["VersionWaits"].pool == "b"
    assert stop(with_management(ready, machines=before))["VersionWaits"].pool == "b"
    assert stop(with_management(ready, machines=[])) == {}


def test_a_paused_pool_stops_the_sequence_and_is_named():
    ready = with_control_plane(world(), NEW)
    paused = changed(ready.management.deployments["x-pool-a"], "spec.paused", True)
    assert versions(with_deployment(ready, paused)) == {}
    assert stop(with_deployment(ready, paused))["VersionStopped"].pool == "a"


def test_a_failed_machine_stops_the_sequence():
    ready = on_version(with_control_plane(world(), NEW), "a", NEW)
    failed = machine("x-pool-a-9", "x-pool-a", status={"phase": "Failed"})
    ready = with_management(ready, machines=[*ready.management.machines, failed])
    assert versions(ready) == {}
    assert stop(ready)["VersionStopped"].why == "Machine x-pool-a-9 has failed"


def test_a_blocked_pool_stops_the_sequence():
    pools = {**POOLS, "a": pool(2, nodeClass="gone")}
    ready = replace(with_control_plane(world(), NEW), cluster=cluster("x", version=NEW, workerPools=pools))
    assert versions(ready) == {}
    assert stop(ready)["VersionStopped"].pool == "a"


def test_more_than_one_minor_version_is_refused():
    far = replace(world(), cluster=cluster("x", version="v1.34.0", workerPools=POOLS))
    assert versions(far) == {}
    assert stop(far)["VersionSkew"] == VersionSkew(from_=OLD, to="v1.34.0")


def test_the_way_back_is_refused():
    back = replace(world(), cluster=cluster("x", version="v1.31.0", workerPools=POOLS))
    assert versions(back) == {}
    assert "VersionSkew" in stop(back)


def test_the_next_version_waits_until_the_control_plane_has_finished_with_this_one():
    moving = with_control_plane(world(), NEW)
    moving = with_management(moving, control_plane=settled(moving.management.control_plane, upToDateReplicas=0))
    again = replace(moving, cluster=cluster("x", version="v1.34.0", workerPools=POOLS))
    assert versions(again) == {}
    assert stop(again)["VersionWaits"].version == NEW


def test_a_control_plane_never_leaves_a_kubelet_more_than_three_minors_behind():
    late = on_version(with_control_plane(world(), "v1.35.0"), "a", "v1.32.0")
    late = replace(late, cluster=cluster("x", version="v1.36.0", workerPools=POOLS))
    assert "x-control-plane" not in versions(late)


def test_a_new_pool_never_gets_a_kubelet_newer_than_the_control_plane():
    pools = {**POOLS, "new": pool(1)}
    moving = replace(world(), cluster=cluster("x", version=NEW, workerPools=pools))
    assert versions(moving) == {"x-control-plane": NEW, "x-pool-new": OLD}


def test_the_version_may_be_corrected_before_the_control_plane_is_initialized():
    early = with_management(world(), cluster=changed(world().management.cluster, "status", {}))
    assert versions(early)["x-control-plane"] == NEW


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1.32.0", KubeVersion(1, 32, 0)),
        ("1.32.10", KubeVersion(1, 32, 10)),
        ("v1.32.0-rc.1", KubeVersion(1, 32, 0, "rc.1")),
        ("v1.32.0-rc.1+build.7", KubeVersion(1, 32, 0, "rc.1", "build.7")),
        ("v1.32.0+build.7", KubeVersion(1, 32, 0, "", "build.7")),
        ("v1.32", None),
        ("", None),
        ("v1." + "9" * 5000 + ".0", None),
    ],
)
def test_versions_are_read_with_and_without_their_v(text, version):
    assert parse_version(text) == version


def test_minor_versions_are_counted_within_one_major():
    assert minors_between("v1.31.4", "v1.33.0") == 2
    assert minors_between("v1.33.0", "v1.32.9") == -1
    assert minors_between("v1.33.0", "v2.0.0") is None
