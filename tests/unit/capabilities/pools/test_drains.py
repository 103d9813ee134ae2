"""Drain of a removed pool: cordon, evict within PodDisruptionBudgets, then delete."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.removals import PodOnNode
from nodeyard.capabilities.pools.planning.removals import LISTED, RETRY, SETTLE
from nodeyard.capabilities.pools.snapshot import Workload
from nodeyard.capabilities.pools.types import PoolPhase
from nodeyard.kube.drain import DRAIN_LABEL
from nodeyard.kube.names import MIRROR_POD, POOL_DRAINING
from nodeyard.kube.objects import Pod
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.model import Disruption, Plan, Verb

from ....builders.pool_removal import World, deployment, member, node, pod
from ....builders.pools import NOW

STARTED = "2030-01-01T00:00:00Z"


def begun(**given: Any) -> World:
    """The start of the drain is recorded and nothing else is done."""
    return World.of(**given).passed()


def closed(**given: Any) -> World:
    """Every node is cordoned."""
    return begun(**given).passed()


def evicted(world: World) -> list[str]:
    return [action.object.name for action in world.plan().actions if action.verb is Verb.EVICT]


# the start


def test_the_start_is_noted_on_the_machine_deployment_before_anything_else() -> None:
    outcome = World.of(pods=[pod("web", "gpu-0")]).plan()
    [action] = outcome.actions
    assert (action.verb, action.object.kind, action.reason) == (Verb.PATCH, "MachineDeployment", "DrainStarted")
    assert outcome.write(action).body == {"metadata": {"annotations": {names.DRAIN_STARTED: STARTED}}}
    assert outcome.write(action).resource_version == "1"
    assert outcome.phase() == PoolPhase.DRAINING


def test_the_start_takes_the_autoscaler_off_the_pool() -> None:
    bounds = {names.AUTOSCALER_MIN: "1", names.AUTOSCALER_MAX: "5"}
    world = World.of(deployments={"gpu": deployment("gpu", metadata={"annotations": bounds})})
    outcome = world.plan()
    [action] = outcome.actions
    changes = outcome.write(action).body["metadata"]["annotations"]
    assert changes == {names.AUTOSCALER_MIN: None, names.AUTOSCALER_MAX: None, names.DRAIN_STARTED: STARTED}


def test_a_returning_autoscaler_is_disabled_again_and_the_start_time_is_kept() -> None:
    world = closed(pods=[pod("web", "gpu-0")])
    live = world.deployments["gpu"]
    bounds = {**live["metadata"]["annotations"], names.AUTOSCALER_MIN: "1"}
    world = world.but(deployments={"gpu": {**live, "metadata": {**live["metadata"], "annotations": bounds}}})
    outcome = world.later(minutes=1).plan()
    [action] = outcome.actions
    assert outcome.write(action).body == {"metadata": {"annotations": {names.AUTOSCALER_MIN: None}}}
    assert action.disruption is Disruption.NONE


def test_an_invalid_start_time_is_rewritten() -> None:
    world = World.of(deployments={"gpu": deployment("gpu", metadata={"annotations": {names.DRAIN_STARTED: "soon"}})})
    assert world.plan().reasons() == ["DrainStarted"]


def test_replicas_are_never_written() -> None:
    world = World.of(pods=[pod("web", "gpu-0")])
    for _ in range(6):
        outcome = world.plan()
        assert not any("replicas" in str(outcome.write(action).body) for action in outcome.actions)
        world = world.done(outcome).settled().later(seconds=10)


# cordons


def test_every_node_is_cordoned_before_a_pod_is_evicted() -> None:
    outcome = begun(pods=[pod("web", "gpu-0")]).plan()
    assert [action.object.name for action in outcome.actions] == ["gpu-0", "gpu-1"]
    assert set(outcome.reasons()) == {"NodeCordoned"}


def test_a_cordon_records_its_owner_and_that_the_node_is_being_drained() -> None:
    outcome = begun(nodes=1).plan()
    [action] = outcome.actions
    assert outcome.write(action).body == {
        "metadata": {"annotations": {POOL_DRAINING: STARTED, names.CORDONED_BY: "prod/gpu"}},
        "spec": {"unschedulable": True},
    }
    assert outcome.write(action).resource_version == "1"


def test_a_foreign_cordon_is_not_recorded_as_ours() -> None:
    outcome = begun(nodes=1).but(nodes={"gpu-0": node("gpu-0", cordoned=True)}).plan()
    [action] = outcome.actions
    assert outcome.write(action).body == {"metadata": {"annotations": {POOL_DRAINING: STARTED}}}


def test_a_node_that_is_uncordoned_during_the_drain_is_cordoned_again() -> None:
    world = closed(nodes=1, pods=[pod("web", "gpu-0")])
    assert world.nodes is not None
    spec = msgspec.structs.replace(world.nodes["gpu-0"].spec, unschedulable=False)
    world = world.but(nodes={"gpu-0": msgspec.structs.replace(world.nodes["gpu-0"], spec=spec)})
    assert world.plan().reasons() == ["NodeCordoned"]


def test_a_machine_that_joins_is_drained_too() -> None:
    world = closed(nodes=1, pods=[pod("new", "gpu-7")])
    assert world.nodes is not None
    nodes = {**world.nodes, "gpu-7": node("gpu-7")}
    world = world.but(machines=[*world.machines, member("gpu", 7)], nodes=nodes).later(minutes=1)
    assert [action.object.name for action in world.plan().actions] == ["gpu-7"]
    assert evicted(world.passed()) == ["new"]


def test_nodes_of_other_pools_are_left_alone() -> None:
    world = begun(nodes=1)
    assert world.nodes is not None
    other = member("web", 0)
    world = world.but(machines=[*world.machines, other], nodes={**world.nodes, "web-0": node("web-0")})
    world = world.but(pods=(pod("db", "web-0"),))
    assert [action.object.name for action in world.plan().actions] == ["gpu-0"]
    assert evicted(world.passed()) == []


# evictions


def test_pods_are_evicted_by_their_uid_and_the_node_they_leave_is_named() -> None:
    outcome = closed(pods=[pod("web", "gpu-0"), pod("db", "gpu-1")]).plan()
    assert [action.object.uid for action in outcome.actions] == ["uid-web", "uid-db"]
    assert [action.disrupts for action in outcome.actions] == [("gpu-0",), ("gpu-1",)]
    assert {action.verb for action in outcome.actions} == {Verb.EVICT}


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(pod("p", "gpu-0", annotations={MIRROR_POD: "x"}), id="static-pod"),
        pytest.param(pod("p", "gpu-0", owner="DaemonSet"), id="of-a-daemon-set"),
        pytest.param(pod("p", "gpu-0", labels={DRAIN_LABEL: "skip"}), id="wants-to-be-skipped"),
        pytest.param(pod("p", "gpu-0", labels={DRAIN_LABEL: "Skip"}), id="wants-to-be-skipped-in-capitals"),
        pytest.param(
            pod("p", "gpu-0", owner="DaemonSet", deletionTimestamp=STARTED, finalizers=["x"]),
            id="of-a-daemon-set-and-terminating",
        ),
        pytest.param(
            pod("p", "gpu-0", labels={DRAIN_LABEL: "wait-completed"}, phase="Succeeded"),
            id="wanted-to-be-waited-for-and-finished",
        ),
    ],
)
def test_pods_deleted_with_the_node_are_neither_evicted_nor_awaited(left: Pod) -> None:
    world = closed(pods=[left], daemon_sets=frozenset({("default", "owner")})).later(seconds=10)
    assert world.plan().reasons() == ["PoolDeleted"]


@pytest.mark.parametrize(
    "going",
    [
        pytest.param(pod("p", "gpu-0"), id="of-a-replica-set"),
        pytest.param(pod("p", "gpu-0", ownerReferences=[]), id="of-nobody"),
        pytest.param(pod("p", "gpu-0", owner="DaemonSet"), id="of-a-daemon-set-that-is-gone"),
        pytest.param(pod("p", "gpu-0", phase="Succeeded"), id="finished"),
        pytest.param(pod("p", "gpu-0", labels={DRAIN_LABEL: "who knows"}), id="with-an-unknown-wish"),
    ],
)
def test_all_other_pods_are_evicted(going: Pod) -> None:
    assert evicted(closed(pods=[going])) == ["p"]


def test_a_finished_pod_of_a_daemon_set_is_evicted() -> None:
    done = pod("p", "gpu-0", owner="DaemonSet", phase="Failed")
    assert evicted(closed(pods=[done], daemon_sets=frozenset({("default", "owner")}))) == ["p"]


@pytest.mark.parametrize(
    "waited_for",
    [
        pytest.param(pod("p", "gpu-0", deletionTimestamp=STARTED, finalizers=["x"]), id="terminating"),
        pytest.param(pod("p", "gpu-0", labels={DRAIN_LABEL: "wait-completed"}), id="to-be-completed"),
        pytest.param(pod("p", "gpu-0", labels={DRAIN_LABEL: "WaitCompleted"}), id="in-the-other-spelling"),
    ],
)
def test_a_pod_on_its_way_is_waited_for_and_not_evicted(waited_for: Pod) -> None:
    outcome = closed(pods=[waited_for]).later(minutes=1).plan()
    assert not outcome.actions
    assert outcome.blocked("Draining").blocking_pods == (PodOnNode("default/p", "gpu-0"),)
    assert outcome.blocked("Draining").nodes == 1


def test_a_refused_eviction_is_asked_for_again_within_ten_seconds() -> None:
    world = closed(pods=[pod("web", "gpu-0")], timeout=0).passed(refused=["web"])
    outcome = world.plan()
    assert outcome.reasons() == ["PodEvicted"]
    assert outcome.builder.wake_at == world.now + RETRY


def test_a_pod_on_an_unreachable_node_is_given_up_when_it_is_overdue() -> None:
    lost = node("gpu-0", ready="Unknown")
    stuck = pod("web", "gpu-0", deletionTimestamp="2030-01-01T00:01:00Z", finalizers=["kubelet"])
    world = World.of(nodes=1, pods=[stuck]).but(nodes={"gpu-0": lost}).passed().passed()
    waiting = world.later(seconds=60).plan()
    assert waiting.blocked("Draining").blocking_pods[0].pod == "default/web"
    assert waiting.builder.wake_at == NOW + timedelta(seconds=62)
    assert world.later(seconds=62).plan().reasons() == ["PoolDeleted"]


def test_an_overdue_pod_on_a_reachable_node_is_waited_for() -> None:
    stuck = pod("web", "gpu-0", deletionTimestamp="2030-01-01T00:01:00Z", finalizers=["storage"])
    world = World.of(nodes=1, pods=[stuck]).passed().passed()
    assert not world.later(minutes=4).plan().actions


def test_pods_of_an_unreachable_node_get_no_time_to_end() -> None:
    world = World.of(nodes=1, pods=[pod("web", "gpu-0")]).but(nodes={"gpu-0": node("gpu-0", ready="Unknown")})
    outcome = world.passed().passed().plan()
    [action] = outcome.actions
    assert outcome.write(action).body == {"gracePeriodSeconds": 1}


# the end


def test_an_empty_pool_is_deleted_when_its_cordons_have_settled() -> None:
    world = closed()
    waiting = world.plan()
    assert not waiting.actions
    assert waiting.builder.wake_at == NOW + SETTLE
    outcome = world.later(seconds=5).plan()
    [action] = outcome.actions
    assert (action.verb, action.object.uid) == (Verb.DELETE, "uid-prod-pool-gpu")
    assert outcome.write(action).propagation == "Background"
    assert outcome.state().reason == "PoolDeleted"


def test_a_cordon_that_came_late_settles_too() -> None:
    world = begun(nodes=1).later(minutes=1).passed()
    assert not world.plan().actions
    assert world.later(seconds=5).plan().reasons() == ["PoolDeleted"]


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(member("gpu", 9, node=""), id="a-machine-that-never-became-a-node"),
        pytest.param(member("gpu", 9), id="a-machine-whose-node-is-gone"),
    ],
)
def test_a_machine_without_node_has_nothing_to_drain(lost: Any) -> None:
    world = closed(nodes=1)
    assert world.but(machines=[*world.machines, lost]).later(seconds=5).plan().reasons() == ["PoolDeleted"]


def test_counted_but_unseen_machines_are_not_treated_as_missing() -> None:
    world = World.of(nodes=0, deployments={"gpu": deployment("gpu", status={"replicas": 2})})
    assert world.plan().reasons() == ["DrainStarted"]


def test_the_drain_continues_from_any_state_to_its_end() -> None:
    world = World.of(nodes=3, pods=[pod(f"p{number}", f"gpu-{number}") for number in range(3)]).converged()
    assert not world.deployments
    assert not world.machines


# the timeout


def test_after_the_timeout_the_blocking_pods_are_named_and_nothing_is_deleted() -> None:
    world = closed(pods=[pod("web", "gpu-0"), pod("db", "gpu-1")]).later(seconds=300)
    outcome = world.plan()
    facts = outcome.blocked("DrainTimeout")
    assert [str(each) for each in facts.blocking_pods] == ["default/web on gpu-0", "default/db on gpu-1"]
    assert msgspec.to_builtins(facts)["blockingPods"][0] == {"pod": "default/web", "node": "gpu-0"}
    assert (facts.pool, facts.pods, facts.nodes, facts.seconds) == ("gpu", 2, 2, 300)
    assert "default/web on gpu-0, default/db on gpu-1" in facts.text()
    assert outcome.reasons() == ["PodEvicted", "PodEvicted"]
    assert outcome.phase() == PoolPhase.BLOCKED


def test_the_plan_wakes_when_the_timeout_is_over() -> None:
    waited_for = pod("p", "gpu-0", deletionTimestamp=STARTED, finalizers=["x"])
    outcome = closed(pods=[waited_for]).plan()
    assert outcome.builder.wake_at == NOW + timedelta(seconds=300)


def test_without_a_timeout_a_drain_never_counts_as_blocked() -> None:
    outcome = closed(pods=[pod("web", "gpu-0")], timeout=0).later(days=365).plan()
    assert outcome.phase() == PoolPhase.DRAINING


def test_a_timeout_beyond_all_dates_is_no_error() -> None:
    outcome = closed(pods=[pod("web", "gpu-0")], timeout=10**15).plan()
    assert outcome.phase() == PoolPhase.DRAINING


def test_a_drain_that_timed_out_still_ends() -> None:
    world = closed(pods=[pod("web", "gpu-0")]).later(hours=1)
    assert world.plan().phase() == PoolPhase.BLOCKED
    assert not world.converged().deployments


def test_only_so_many_pods_are_named() -> None:
    crowd = [pod(f"p{number:03}", "gpu-0") for number in range(LISTED + 10)]
    outcome = closed(pods=crowd).plan()
    facts = outcome.blocked("Draining")
    assert (len(facts.blocking_pods), facts.pods) == (LISTED, LISTED + 10)


# unknown state


def test_a_cluster_that_cannot_be_reached_keeps_its_pool() -> None:
    away = Workload(uid="theirs", cluster="prod", error="connection refused")
    outcome = closed().but(workload=away).later(hours=1).plan()
    assert not outcome.actions
    assert outcome.blocked("WorkloadClusterUnreachable").error == "connection refused"
    assert outcome.phase() == PoolPhase.BLOCKED


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(Workload(uid="theirs"), id="another-cluster-before-the-pivot"),
        pytest.param(Workload(), id="nothing-is-known"),
        pytest.param(Workload(cluster="prod"), id="never-reached"),
    ],
)
def test_our_own_node_is_never_confused_with_one_of_a_remote_cluster(workload: Workload) -> None:
    outcome = begun(pods=[pod("web", "gpu-0")]).but(workload=workload).plan()
    assert not outcome.actions
    assert outcome.phase() == PoolPhase.BLOCKED


def test_unknown_pods_keep_the_pool_but_its_nodes_are_cordoned() -> None:
    world = begun().but(pods=None)
    assert set(world.plan().reasons()) == {"NodeCordoned"}
    outcome = world.passed().later(hours=1).plan()
    assert not outcome.actions
    assert outcome.state().reason == "PodsUnknown"


def test_remote_nodes_are_written_on_their_own_cluster() -> None:
    away = Workload(uid="theirs", cluster="prod")
    world = World.of(nodes=1, pods=[pod("web", "gpu-0")], workload=away)
    [start] = world.plan().actions
    assert (start.object.cluster, start.disrupts) == ("", ("prod:gpu-0",))
    [cordon] = world.passed().plan().actions
    [eviction] = world.passed().passed().plan().actions
    assert (cordon.object.cluster, eviction.object.cluster) == ("prod", "prod")
    assert cordon.id == "prod:Node/gpu-0"


# the brake


def held(world: World) -> list[str]:
    """Return what the brake holds if no node may be disrupted without approval."""
    plan = Plan(capability="pools", key="k", actions=tuple(world.plan().actions))
    braked = brake(plan, Limit(nodes=0, percent=0), 100)
    return [] if braked.held is None else [action.reason for action in braked.held.actions]


def test_the_start_counts_every_node_of_the_pool_and_nothing_after_it_does() -> None:
    world = World.of(nodes=3, pods=[pod("web", "gpu-0")])
    [start] = world.plan().actions
    assert (start.disruption, start.disrupts) == (Disruption.RELEASES, ("gpu-0", "gpu-1", "gpu-2"))
    assert held(world) == ["DrainStarted"]
    for _ in range(5):
        world = world.passed().later(seconds=5)
        assert held(world) == []
    assert not world.deployments
