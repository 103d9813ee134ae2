"""Status and events of a LatticeCluster after a reconcile."""

from dataclasses import replace

import msgspec
import pytest

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.planning.server_side_apply import ref_to
from nodeyard.capabilities.pools.report import report
from nodeyard.capabilities.pools.report.events import events
from nodeyard.capabilities.pools.snapshot import MachineSet, Workload
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.plan.brake import Limit, brake

from ....builders.pool_objects import (
    SERVED,
    changed,
    running,
    settled,
    with_deployment,
    with_management,
    with_replicas,
)
from ....builders.pools import NOW, SEED_POOLS, cluster, machine, node_class, pool, snapshot

CLASSES = tuple(node_class(name) for name in ("medium", "gpu-large", "memory-optimized"))
SEED = cluster("prod", workerPools=SEED_POOLS)


def after(world, *failed, message="refused"):
    """Return the status after a reconcile in which actions with these reasons failed."""
    planned = plan(world, NOW).plan
    outcome = Outcome(results=tuple(_result(action, failed, message) for action in planned.actions))
    writes = report(world, planned, outcome, NOW).statuses
    return writes[0].status if writes else None


def _result(action, failed, message):
    if action.reason in failed:
        return ActionResult(action=action, result=Result.FAILED, message=message)
    return ActionResult(action=action, result=Result.DONE)


def condition(found, kind):
    return next(each for each in found["conditions"] if each["type"] == kind)


def test_a_settled_cluster_is_ready_with_the_designs_fields_for_each_pool():
    found = after(running(SEED, *CLASSES))
    assert found["phase"] == "Ready"
    assert condition(found, "Ready")["status"] == "True"
    gpu = found["workerPools"]["gpu"]
    assert (gpu["desired"], gpu["ready"], gpu["available"], gpu["nodeClass"]) == (2, 2, 2, "gpu-large")
    assert (gpu["replicas"], gpu["upToDate"], gpu["phase"]) == (2, 2, "Ready")
    assert (found["workers"], found["readyWorkers"], found["pivoted"]) == (6, 6, True)


def test_a_status_that_is_there_already_is_not_written_again():
    world = running(SEED, *CLASSES)
    lc = msgspec.convert({**msgspec.to_builtins(world.cluster), "status": after(world)}, LatticeCluster)
    assert after(replace(world, cluster=lc)) is None


def test_a_new_cluster_is_pending_and_reports_what_its_workers_wait_for():
    found = after(snapshot(cluster("c", workers=2), served=SERVED))
    assert found["phase"] == "Pending"
    assert found["workerPools"]["default"] == {
        "desired": 2, "ready": 0, "available": 0, "replicas": 0, "upToDate": 0, "phase": "Pending",
    }  # fmt: skip
    assert condition(found, "Provisioned")["reason"] == "NotPivoted"


def test_a_cluster_whose_control_plane_runs_but_is_not_its_own_is_pivoting():
    world = replace(running(SEED, *CLASSES), workload=Workload(uid="elsewhere"))
    assert after(world)["phase"] == "Pivoting"


def test_until_the_uid_of_the_cluster_is_known_the_status_stays_as_it_was():
    pending = Workload(is_pending=True)
    assert after(replace(running(SEED, *CLASSES), workload=pending)) is None


def test_counters_of_an_older_spec_are_not_believed():
    world = running(cluster("c", workers=3))
    live = world.management.deployments["c-pool-default"]
    stale = changed(live, "metadata.generation", 7)
    assert after(with_deployment(world, stale))["workerPools"]["default"]["ready"] == 0


def test_counters_above_the_number_wanted_are_shown_as_they_are():
    world = running(cluster("c", workers=2))
    rolling = settled(
        world.management.deployments["c-pool-default"],
        replicas=3,
        readyReplicas=3,
        availableReplicas=3,
        upToDateReplicas=1,
    )
    found = after(with_deployment(world, rolling))["workerPools"]["default"]
    assert (found["ready"], found["upToDate"], found["phase"]) == (3, 1, "Rolling")


def test_a_pool_that_is_changed_in_this_very_pass_is_not_called_ready():
    scaled = replace(running(cluster("c", workers=2)), cluster=cluster("c", workers=3))
    found = after(scaled)
    assert found["workerPools"]["default"]["phase"] == "Scaling"
    assert (condition(found, "Ready")["status"], condition(found, "Ready")["reason"]) == ("False", "Scaling")


def test_outdated_machines_are_detected_regardless_of_counters():
    world = running(cluster("c", workerPools={"a": pool(1)}))
    refs = ("bootstrap.configRef.name", "infrastructureRef.name")
    for ref in refs:
        live = changed(world.management.deployments["c-pool-a"], f"spec.template.spec.{ref}", "before")
        old = msgspec.convert({"metadata": {"name": "s"}, "spec": {"template": live["spec"]["template"]}}, MachineSet)
        owner = {"kind": "MachineSet", "name": "s", "uid": "u", "apiVersion": "v1", "controller": True}
        metadata, spec = {"ownerReferences": [owner]}, {"version": world.cluster.version}
        made = machine("m", "c-pool-a", node="n", metadata=metadata, spec=spec)
        found = after(with_management(world, machine_sets=[old], machines=[made]))
        assert found["workerPools"]["a"]["phase"] == "Rolling", ref
        assert condition(found, "Ready")["reason"] == "Rolling"


def test_a_blocked_pool_is_named_and_the_others_are_well():
    world = running(SEED, *CLASSES)
    world = replace(world, classes={name: each for name, each in world.classes.items() if name != "medium"})
    found = after(world)
    assert found["workerPools"]["general"]["phase"] == "Blocked"
    assert found["workerPools"]["gpu"]["phase"] == "Ready"
    assert condition(found, "Accepted")["reason"] == "NodeClassNotFound"
    assert "medium" in condition(found, "Accepted")["message"]


def test_a_write_that_failed_is_in_the_ready_condition():
    pools = {**SEED_POOLS, "gpu": {**SEED_POOLS["gpu"], "replicas": 5}}
    world = replace(running(SEED, *CLASSES), cluster=cluster("prod", workerPools=pools))
    ready = condition(after(world, "PoolScaled", message="denied by quota"), "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "PoolScaledFailed")
    assert "denied by quota" in ready["message"]


def test_a_held_plan_comes_first_with_its_approve_command():
    """A deletion that the brake holds is reported as held, not as in progress."""
    world = running(SEED, *CLASSES)
    going = cluster("prod", workerPools=SEED_POOLS, metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    world = replace(world, cluster=going, workload=Workload(uid="theirs", cluster="prod"))
    braked = brake(plan(world, NOW).plan, Limit(nodes=0, percent=0), managed=7)
    (write,) = report(world, braked.now, Outcome(), NOW).statuses
    ready = condition(write.status, "Ready")
    assert ready["reason"] == "NeedsApproval"
    assert f"`nodeyard approve {braked.held.id}` to proceed" in ready["message"]
    assert write.status["message"] == ready["message"]
    (warning,) = events(world, braked.now, Outcome())
    assert (warning.reason, warning.message, warning.is_standing) == ("NeedsApproval", ready["message"], True)


def test_the_desired_size_of_an_autoscaled_pool_is_that_of_the_autoscaler():
    lc = cluster("c", workerPools={"a": pool(2, min=1, max=5)}, autoscaling="ClusterAutoscaler")
    world = running(lc)
    grown = settled(with_replicas(world.management.deployments["c-pool-a"], 4, "cluster-autoscaler"))
    assert after(with_deployment(world, grown))["workerPools"]["a"]["desired"] == 4


# events


def told(world, *failed):
    planned = plan(world, NOW).plan
    outcome = Outcome(results=tuple(_result(action, failed, "no") for action in planned.actions))
    return {event.reason: event for event in events(world, planned, outcome)}


def test_ignored_bounds_are_warned_of_with_the_message_of_the_design_once_per_generation():
    pools = {"general": pool(5, min=3, max=10)}
    world = running(cluster("c", workerPools=pools))
    warning = told(world)["AutoscalingIgnored"]
    assert warning.type == "Warning"
    assert warning.message == 'pool="general": min/max autoscaling not implemented, using fixed replicas=5'
    seen = replace(world, cluster=cluster("c", workerPools=pools, status={"observedGeneration": 1}))
    assert "AutoscalingIgnored" not in told(seen)
    assert "AutoscalingIgnored" not in told(replace(world, workload=Workload(is_pending=True)))


def test_actions_on_a_pool_are_events_and_bookkeeping_is_not():
    pools = {**SEED_POOLS, "gpu": {**SEED_POOLS["gpu"], "replicas": 5}}
    world = replace(running(SEED, *CLASSES), cluster=cluster("prod", workerPools=pools))
    assert told(world)["PoolScaled"].message == "Scaled pool gpu (GPU Workers (A100)) from 2 to 5"
    assert set(told(snapshot(cluster("c", workers=1), served=SERVED))).isdisjoint({"TemplateCreated", "FinalizerAdded"})


def test_a_failure_is_a_warning_with_the_message_of_the_server():
    pools = {**SEED_POOLS, "gpu": {**SEED_POOLS["gpu"], "replicas": 5}}
    world = replace(running(SEED, *CLASSES), cluster=cluster("prod", workerPools=pools))
    assert told(world, "PoolScaled")["PoolScaledFailed"].type == "Warning"


@pytest.mark.parametrize("path", ["spec.paused", "metadata.annotations"])
def test_a_paused_pool_is_reported_in_status_and_why(path):
    world = running(cluster("c", workerPools={"a": pool(3)}))
    value: object = True if path == "spec.paused" else {names.PAUSED_ANNOTATION: ""}
    world = with_deployment(world, changed(world.management.deployments["c-pool-a"], path, value))
    text = "The MachineDeployment of pool a is paused: Cluster API leaves its Machines as they are"
    found = after(world)
    assert (condition(found, "Ready")["reason"], condition(found, "Ready")["message"]) == ("Paused", text)
    assert found["workerPools"]["a"]["message"] == text
    ref = ref_to(world.management.deployments["c-pool-a"])
    (decision,) = plan(world, NOW, [ref]).plan.decisions
    assert (decision.rule, decision.facts.text()) == ("Paused", text)
    assert [each.reason for each in decision.would_change] == ["UnpauseDeployment"]


def test_a_true_condition_does_not_contradict_another():
    wanted = cluster("c", workerPools={"a": pool(1), "b": pool(1, nodeClass="gone")})
    found = after(replace(running(cluster("c", workerPools={"a": pool(1)})), cluster=wanted))
    assert condition(found, "Accepted")["status"] == "False"
    for kind in ("Provisioned", "PoolsDrained", "VersionCurrent"):
        assert condition(found, kind)["status"] == "True"
        assert "match the spec" not in condition(found, kind)["message"]
