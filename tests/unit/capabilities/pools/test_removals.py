"""Removal with Orphan and Force, cancelled removals, and policies that change in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.removed_pool import RemovedPool
from nodeyard.capabilities.pools.snapshot import Workload
from nodeyard.capabilities.pools.types import PoolPhase
from nodeyard.kube.json import Object
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.model import Disruption, Plan, Verb

from ....builders.nested_json import nested
from ....builders.pool_removal import TEMPLATE, World, deployment, member, node, pod
from ....builders.pools import NOW

TIMEOUTS = ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds")
EXCLUSIONS = {names.EXCLUDE_DRAINING: "true", names.EXCLUDE_VOLUME_WAIT: "true"}
PODS = (pod("web", "gpu-0"),)


def template_of(world: World) -> Object:
    """Drop empty maps: Cluster API treats them as absent."""
    template: Object = world.deployments["gpu"]["spec"]["template"]
    metadata = {key: value for key, value in (template.get("metadata") or {}).items() if value}
    return {**template, "metadata": metadata} if metadata else {"spec": template["spec"]}


def annotations_of(world: World) -> Mapping[str, str]:
    return world.deployments["gpu"]["metadata"].get("annotations") or {}


def with_template(template: Object, **given: Any) -> World:
    return World.of(deployments={"gpu": deployment("gpu", template=template)}, pods=PODS, **given)


# no nodes


@pytest.mark.parametrize("policy", ["Drain", "Orphan", "Force"])
def test_a_pool_without_machines_is_deleted_at_once(policy: str) -> None:
    outcome = World.of(nodes=0, policy=policy).plan()
    [action] = outcome.actions
    assert (action.verb, action.object.uid, action.disruption) == (Verb.DELETE, "uid-prod-pool-gpu", Disruption.NONE)
    assert not outcome.builder.blocked


def test_a_pool_without_machines_is_deleted_also_where_its_cluster_is_not_known() -> None:
    assert World.of(nodes=0, workload=Workload()).plan().reasons() == ["PoolDeleted"]


def test_a_machine_deployment_that_is_being_deleted_is_only_waited_for() -> None:
    going = deployment("gpu", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    outcome = World.of(deployments={"gpu": going}, pods=PODS).plan()
    assert not outcome.actions
    assert outcome.blocked("WaitingForMachineDeployment").machines == 2
    assert outcome.phase() == PoolPhase.DELETING


@pytest.mark.parametrize(
    "paused",
    [
        pytest.param(deployment("gpu", metadata={"annotations": {names.PAUSED_ANNOTATION: ""}}), id="by-annotation"),
        pytest.param(deployment("gpu", spec={"paused": True}), id="by-its-spec"),
    ],
)
def test_a_paused_machine_deployment_is_left_alone(paused: Object) -> None:
    outcome = World.of(deployments={"gpu": paused}).plan()
    assert not outcome.actions
    assert outcome.phase() == PoolPhase.PAUSED


def test_an_unknown_policy_drains() -> None:
    assert World.of(policy="Explode").plan().reasons() == ["DrainStarted"]


# Orphan


@pytest.mark.parametrize(("timeout", "seconds"), [(120, 120), (0, 1)])
def test_orphan_bounds_the_drain_of_cluster_api(timeout: int, seconds: int) -> None:
    outcome = World.of(policy="Orphan", timeout=timeout).plan()
    [action] = outcome.actions
    body = outcome.write(action).body
    assert body["spec"] == {"template": {"spec": {"deletion": dict.fromkeys(TIMEOUTS, seconds)}}}
    assert outcome.write(action).resource_version == "1"


def test_orphan_says_that_the_machines_are_deleted_all_the_same() -> None:
    world = World.of(policy="Orphan")
    assert world.plan().blocked("OrphanDeletesMachines").machines == 2
    assert world.passed().plan().blocked("OrphanDeletesMachines").pool == "gpu"


def test_orphan_waits_until_every_machine_has_the_limits_and_then_deletes() -> None:
    world = World.of(policy="Orphan", timeout=60, pods=PODS)
    marked = world.done(world.plan())
    waiting = marked.plan()
    assert not waiting.actions
    assert waiting.blocked("WaitingForMachines").names == ("gpu-0", "gpu-1")
    assert waiting.phase() == PoolPhase.DELETING
    assert marked.settled().plan().reasons() == ["PoolDeleted"]


def test_orphan_follows_a_timeout_that_is_changed_meanwhile() -> None:
    world = World.of(policy="Orphan", timeout=60, pods=PODS).passed().but(timeout=90)
    outcome = world.plan()
    [action] = outcome.actions
    assert action.disruption is Disruption.NONE
    world = world.passed()
    assert template_of(world)["spec"]["deletion"][TIMEOUTS[0]] == 90
    assert template_of(world.but(wanted=frozenset({"gpu"})).passed()) == TEMPLATE


def test_orphan_touches_neither_nodes_nor_pods() -> None:
    world = World.of(policy="Orphan", pods=PODS)
    kinds = [action.object.kind for action in (*world.plan().actions, *world.passed().plan().actions)]
    assert kinds == ["MachineDeployment", "MachineDeployment"]


# Force


def test_force_disables_draining_by_cluster_api() -> None:
    outcome = World.of(policy="Force").plan()
    [action] = outcome.actions
    assert outcome.write(action).body["spec"] == {"template": {"metadata": {"annotations": EXCLUSIONS}}}
    assert action.reason == "PoolMarkedForDeletion"


def test_force_waits_until_every_machine_has_the_settings_and_then_deletes() -> None:
    world = World.of(policy="Force", pods=PODS)
    marked = world.done(world.plan())
    assert marked.plan().state().reason == "WaitingForMachines"
    assert marked.settled().plan().reasons() == ["PoolDeleted"]


def test_force_waits_for_a_machine_that_came_after_the_mark() -> None:
    world = World.of(policy="Force").passed()
    late = world.but(machines=[*world.machines, member("gpu", 9)])
    assert late.plan().blocked("WaitingForMachines").names == ("gpu-9",)


def test_force_does_not_wait_for_a_machine_that_goes_already() -> None:
    world = World.of(policy="Force").passed()
    going = member("gpu", 9, metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    assert world.but(machines=[*world.machines, going]).plan().reasons() == ["PoolDeleted"]


def test_force_needs_approval_also_where_the_template_has_the_settings_already() -> None:
    template = {"metadata": {"annotations": EXCLUSIONS}, "spec": TEMPLATE["spec"]}
    outcome = with_template(template, policy="Force").plan()
    [action] = outcome.actions
    assert (action.reason, action.disruption) == ("PoolMarkedForDeletion", Disruption.DELETES)


# policies that change


@pytest.mark.parametrize("first", ["Drain", "Orphan", "Force"])
@pytest.mark.parametrize("then", ["Drain", "Orphan", "Force"])
@pytest.mark.parametrize("passes", range(4))
def test_a_policy_may_change_at_any_point(first: str, then: str, passes: int) -> None:
    world = World.of(policy=first, pods=PODS)
    for _ in range(passes):
        world = world.passed(refused=["web"])
    world = world.but(policy=then, timeout=60)
    if then == "Drain" and world.deployments:
        blocked = world
        for _ in range(4):
            blocked = blocked.passed(refused=["web"]).later(hours=1)
        assert set(annotations_of(blocked)) == {names.DRAIN_STARTED}
        assert template_of(blocked) == TEMPLATE
    assert not world.converged().deployments


def test_orphan_after_force_lets_cluster_api_drain_again() -> None:
    world = World.of(policy="Force", pods=PODS).passed().but(policy="Orphan").passed()
    assert "annotations" not in template_of(world)["metadata"]
    assert names.EXCLUDE_DRAINING not in world.machines[0].metadata.annotations


def test_a_drain_that_is_taken_up_again_counts_from_its_first_start() -> None:
    world = World.of(pods=PODS).passed().later(minutes=4).but(policy="Orphan").passed(refused=["web"])
    world = world.but(policy="Drain", deployments=world.deployments).later(minutes=2)
    world = world.passed(refused=["web"]).passed(refused=["web"])
    assert RemovedPool(world.snapshot, world.deployments["gpu"], "gpu").started == NOW
    assert world.plan().state().reason == "DrainTimeout"


# restored pools


def wanted(world: World) -> World:
    return world.but(wanted=frozenset({"gpu"}))


def test_a_pool_that_was_never_removed_has_nothing_to_undo() -> None:
    assert not wanted(World.of(pods=PODS)).plan().actions


def test_a_machine_deployment_without_annotations_has_nothing_to_undo() -> None:
    plain = deployment("gpu", template={"spec": {}})
    assert not wanted(World.of(deployments={"gpu": plain})).plan().actions


def test_a_pool_that_is_added_again_is_uncordoned_and_its_drain_forgotten() -> None:
    world = World.of(pods=PODS).passed().passed()
    back = wanted(world).passed()
    assert back.nodes is not None
    assert names.DRAIN_STARTED not in annotations_of(back)
    assert [each.spec.unschedulable for each in back.nodes.values()] == [False, False]
    assert [dict(each.metadata.annotations) for each in back.nodes.values()] == [{}, {}]
    assert not back.plan().actions


def test_a_foreign_cordon_is_kept() -> None:
    world = World.of(nodes=1, pods=PODS).but(nodes={"gpu-0": node("gpu-0", cordoned=True)}).passed().passed()
    assert world.nodes is not None
    assert POOL_DRAINING in world.nodes["gpu-0"].metadata.annotations
    back = wanted(world).passed()
    assert back.nodes is not None
    assert back.nodes["gpu-0"].spec.unschedulable
    assert not back.nodes["gpu-0"].metadata.annotations


def test_a_cordon_of_another_pool_is_not_undone() -> None:
    theirs = node("gpu-0", cordoned=True, annotations={names.CORDONED_BY: "prod/web", POOL_DRAINING: "true"})
    assert not wanted(World.of(nodes=1)).but(nodes={"gpu-0": theirs}).plan().actions


def test_a_cordon_that_was_left_behind_is_undone_though_no_drain_is_noted() -> None:
    ours = node("gpu-0", cordoned=True, annotations={names.CORDONED_BY: "prod/gpu", POOL_DRAINING: "true"})
    outcome = wanted(World.of(nodes=1)).but(nodes={"gpu-0": ours}).plan()
    [action] = outcome.actions
    assert outcome.write(action).body == {
        "metadata": {"annotations": {POOL_DRAINING: None, names.CORDONED_BY: None}},
        "spec": {"unschedulable": None},
    }
    assert outcome.write(action).resource_version == "1"
    assert action.disruption is Disruption.NONE


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(Workload(uid="theirs"), id="another-cluster-before-the-pivot"),
        pytest.param(Workload(uid="theirs", cluster="prod", error="timed out"), id="not-reached"),
    ],
)
def test_a_node_is_not_uncordoned_while_it_is_not_known_to_be_the_pools(workload: Workload) -> None:
    ours = node("gpu-0", cordoned=True, annotations={names.CORDONED_BY: "prod/gpu"})
    assert not wanted(World.of(nodes=1)).but(nodes={"gpu-0": ours}, workload=workload).plan().actions


def test_a_node_that_was_uncordoned_by_hand_only_loses_the_annotations() -> None:
    ours = node("gpu-0", annotations={names.CORDONED_BY: "prod/gpu"})
    outcome = wanted(World.of(nodes=1)).but(nodes={"gpu-0": ours}).plan()
    [action] = outcome.actions
    assert outcome.write(action).body == {"metadata": {"annotations": {names.CORDONED_BY: None}}}


@pytest.mark.parametrize("policy", ["Orphan", "Force"])
@pytest.mark.parametrize(
    "template",
    [
        pytest.param(TEMPLATE, id="as-we-make-them"),
        pytest.param({"metadata": {"labels": {"a": "b"}}, "spec": {"version": "v1.32.0"}}, id="with-nothing-set"),
        pytest.param(
            {
                "metadata": {"annotations": {names.EXCLUDE_DRAINING: "theirs", "other": "1"}},
                "spec": {"deletion": {"nodeDeletionTimeoutSeconds": 5}},
            },
            id="with-settings-of-others",
        ),
    ],
)
def test_a_template_is_restored_to_what_it_was(policy: str, template: Object) -> None:
    marked = with_template(template, policy=policy).passed()
    assert template_of(marked) != template or annotations_of(marked)
    back = wanted(marked).passed()
    assert template_of(back) == template
    assert not annotations_of(back)
    assert not wanted(back).plan().actions


@pytest.mark.parametrize("text", ["{", f'{{"x":{nested(5_000)}}}'], ids=["torn", "nested"])
def test_a_record_that_cannot_be_read_is_dropped(text: str) -> None:
    broken = deployment("gpu", metadata={"annotations": {names.MARKED: text}})
    back = wanted(World.of(deployments={"gpu": broken})).passed()
    assert not annotations_of(back)
    assert template_of(back) == TEMPLATE


def test_a_record_cannot_make_us_change_other_fields() -> None:
    record = '{"policy":"Force","added":["other"],"timeouts":{"nodeDeletionTimeoutSeconds":1}}'
    template = {"metadata": {"annotations": {"other": "1"}}, "spec": TEMPLATE["spec"]}
    forged = deployment("gpu", metadata={"annotations": {names.MARKED: record}}, template=template)
    back = wanted(World.of(deployments={"gpu": forged})).passed()
    assert template_of(back) == template


def test_a_deleting_pool_cannot_come_back() -> None:
    going = deployment("gpu", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    ours = node("gpu-0", cordoned=True, annotations={names.CORDONED_BY: "prod/gpu"})
    world = World.of(nodes=1, deployments={"gpu": going}).but(nodes={"gpu-0": ours})
    assert not wanted(world).plan().actions


def test_a_pool_may_be_removed_again_after_it_came_back() -> None:
    world = wanted(World.of(pods=PODS).passed().passed()).passed().later(hours=1)
    outcome = world.but(wanted=frozenset()).plan()
    [action] = outcome.actions
    assert outcome.write(action).body["metadata"]["annotations"] == {names.DRAIN_STARTED: "2030-01-01T01:00:00Z"}


# crashes and the brake


@pytest.mark.parametrize("policy", ["Drain", "Orphan", "Force"])
def test_the_removal_completes_after_any_single_lost_write(policy: str) -> None:
    for lost in range(6):
        world, written = World.of(policy=policy, pods=PODS), 0
        for _ in range(3):
            outcome = world.plan()
            failing = [action.id for number, action in enumerate(outcome.actions, written) if number == lost]
            written += len(outcome.actions)
            world = world.done(outcome, failing=failing).settled()
        assert not world.converged().deployments


@pytest.mark.parametrize("policy", ["Orphan", "Force"])
def test_one_approval_covers_the_whole_removal_of_a_pool(policy: str) -> None:
    world, asked = World.of(nodes=3, policy=policy, pods=PODS), []
    while world.deployments:
        plan = Plan(capability="pools", key="k", actions=tuple(world.plan().actions))
        held = brake(plan, Limit(nodes=0, percent=0), 100).held
        asked += [] if held is None else [held]
        world = world.passed().later(seconds=5)
    [held] = asked
    assert [action.disrupts for action in held.actions] == [("gpu-0", "gpu-1", "gpu-2")]


def test_an_approval_is_kept_while_machines_are_added_and_removed() -> None:
    ids = set()
    for nodes in (3, 4):
        plan = Plan(capability="pools", key="k", actions=tuple(World.of(nodes=nodes).plan().actions))
        held = brake(plan, Limit(nodes=0, percent=0), 100).held
        assert held is not None
        ids.add(held.id)
    assert len(ids) == 1


@pytest.mark.parametrize("policy", ["Drain", "Orphan", "Force"])
def test_a_pool_with_machines_that_are_not_seen_is_not_deleted(policy: str) -> None:
    hidden = deployment("gpu", status={"replicas": 3})
    world = World.of(deployments={"gpu": hidden}, policy=policy).passed().settled().passed().later(minutes=5)
    outcome = world.plan()
    assert "PoolDeleted" not in outcome.reasons()
    found = outcome.blocked("MachinesUnseen")
    assert (found.replicas, found.machines) == (3, 2)
    assert outcome.phase() == PoolPhase.BLOCKED


def test_a_pool_that_is_added_and_removed_again_needs_another_approval() -> None:
    world = World.of()
    snapshot = world.snapshot
    again = msgspec.structs.replace(snapshot.cluster.metadata, generation=9)
    later = replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, metadata=again))
    assert RemovedPool(later, deployment("gpu"), "gpu").approval_group_name != (
        RemovedPool(snapshot, deployment("gpu"), "gpu").approval_group_name
    )


def test_another_policy_is_another_approval() -> None:
    ids = set()
    for policy in ("Drain", "Orphan", "Force"):
        plan = Plan(capability="pools", key="k", actions=tuple(World.of(policy=policy).plan().actions))
        held = brake(plan, Limit(nodes=0, percent=0), 100).held
        assert held is not None
        ids.add(held.id)
    assert len(ids) == 3
