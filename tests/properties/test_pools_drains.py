"""Properties of the removal of pools, whatever happens meanwhile.

Pods come and go, budgets refuse them, machines join and leave, somebody cordons and uncordons, pools are put back and
taken out again, the policy changes, and any write may be lost: the planner sees only what is there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.capabilities.pools import names
from nodeyard.kube.drain import DRAIN_LABEL, Handling, handling
from nodeyard.kube.names import MIRROR_POD, POOL_DRAINING
from nodeyard.kube.objects import Node, Pod
from nodeyard.plan.model import Verb

from ..builders.pool_removal import Outcome, World, deployment, member, node, pod

POOLS = ("gpu", "web")
POLICIES = ("Drain", "Orphan", "Force")
FOREIGN = "theirs"
"""A MachineDeployment of no pool in the same namespace, with nodes and pods."""

NAMES = tuple(f"{pool}-{number}" for pool in (*POOLS, FOREIGN) for number in range(3))


@dataclass(frozen=True)
class Story:
    """A world, and its foreign objects."""

    world: World
    refused: frozenset[str] = frozenset()
    closed_by_others: frozenset[str] = frozenset()
    """Nodes that were cordoned before the drain."""


@st.composite
def stories(draw: st.DrawFn) -> Story:
    machines = [member(*_parts(name)) for name in NAMES if draw(st.booleans())]
    closed = frozenset(each.node for each in machines if draw(st.integers(0, 3)) == 0)
    nodes = {each.node: node(each.node, cordoned=each.node in closed) for each in machines}
    world = World(
        deployments={pool: deployment(pool) for pool in POOLS},
        machines=machines,
        nodes=nodes,
        daemon_sets=frozenset({("default", "owner")}),
        policy=draw(st.sampled_from(POLICIES)),
        wanted=draw(st.frozensets(st.sampled_from(POOLS))),
        timeout=draw(st.sampled_from((0, 30, 300))),
    )
    story = Story(world, closed_by_others=closed)
    for number in range(draw(st.integers(0, 4))):
        story = _pod_appears(story, draw(st.sampled_from(NAMES)), f"first-{number}", draw(kinds))
    return story


kinds = st.sampled_from(
    (
        {},
        {},
        {},
        {"owner": "DaemonSet"},
        {"annotations": {MIRROR_POD: "x"}},
        {"labels": {DRAIN_LABEL: "skip"}},
        {"finalizers": ["slow"]},
    )
)

events = st.one_of(
    st.tuples(st.just("pass"), st.sets(st.integers(0, 5), max_size=2)),
    st.tuples(st.just("pass"), st.just(frozenset())),
    st.tuples(st.just("pass"), st.just(frozenset())),
    st.tuples(st.just("wait"), st.sampled_from((1, 5, 60, 600))),
    st.tuples(st.just("policy"), st.sampled_from(POLICIES)),
    st.tuples(st.just("want"), st.frozensets(st.sampled_from(POOLS))),
    st.tuples(st.just("pod"), st.tuples(st.sampled_from(NAMES), kinds)),
    st.tuples(st.just("pod gone"), st.integers(0, 5)),
    st.tuples(st.just("refuse"), st.integers(0, 5)),
    st.tuples(st.just("machine"), st.sampled_from(NAMES)),
    st.tuples(st.just("machine gone"), st.sampled_from(NAMES)),
    st.tuples(st.just("node gone"), st.sampled_from(NAMES)),
    st.tuples(st.just("uncordon"), st.sampled_from(NAMES)),
)


def _parts(name: str) -> tuple[str, int]:
    pool, _, number = name.rpartition("-")
    return pool, int(number)


# changes


def _pod_appears(story: Story, on: str, name: str, kind: dict[str, Any]) -> Story:
    """Bind a pod to an existing node, cordoned or not: some pods tolerate the cordon, others are seen late."""
    world = story.world
    if on not in (world.nodes or {}):
        return story
    return replace(story, world=world.but(pods=(*(world.pods or ()), pod(name, on, **kind))))


def _nth(pods: Any, number: int) -> Pod | None:
    return pods[number % len(pods)] if pods else None


def happen(story: Story, event: tuple[str, Any], number: int) -> Story:
    what, given_value = event
    world = story.world
    nodes = dict(world.nodes or {})
    match what:
        case "wait":
            return replace(story, world=world.later(seconds=given_value))
        case "policy":
            return replace(story, world=world.but(policy=given_value))
        case "want":
            return replace(story, world=world.but(wanted=given_value))
        case "pod":
            on, kind = given_value
            return _pod_appears(story, on, f"pod-{number}", kind)
        case "pod gone" if chosen := _nth(world.pods, given_value):
            return replace(story, world=world.but(pods=tuple(each for each in world.pods or () if each != chosen)))
        case "refuse" if chosen := _nth(world.pods, given_value):
            return replace(story, refused=story.refused | {chosen.metadata.name})
        case "machine" if given_value not in nodes and _has_deployment(world, given_value):
            machines = [each for each in world.machines if each.node != given_value]
            joined = world.but(
                machines=[*machines, member(*_parts(given_value))], nodes={**nodes, given_value: node(given_value)}
            )
            return replace(story, world=joined, closed_by_others=story.closed_by_others - {given_value})
        case "machine gone":
            left = [each for each in world.machines if each.node != given_value]
            return replace(story, world=_without_node(world, given_value).but(machines=left))
        case "node gone":
            return replace(story, world=_without_node(world, given_value))
        case "uncordon" if given_value in nodes:
            spec = msgspec.structs.replace(nodes[given_value].spec, unschedulable=False)
            nodes[given_value] = msgspec.structs.replace(nodes[given_value], spec=spec)
            closed = story.closed_by_others - {given_value}
            return replace(story, world=world.but(nodes=nodes), closed_by_others=closed)
    return story


def _has_deployment(world: World, name: str) -> bool:
    pool = _parts(name)[0]
    return pool == FOREIGN or pool in world.deployments


def _without_node(world: World, name: str) -> World:
    nodes = {each: found for each, found in (world.nodes or {}).items() if each != name}
    return world.but(nodes=nodes, pods=tuple(each for each in world.pods or () if each.spec.node_name != name))


# invariants


def evictable(world: World, pool: str) -> list[str]:
    """Return pods on nodes of the pool that a drain waits for."""
    nodes: dict[str, Node] = {
        each.node: world.nodes[each.node]
        for each in world.machines
        if _parts(each.node)[0] == pool and world.nodes and each.node in world.nodes
    }
    return [
        each.metadata.name
        for each in world.pods or ()
        if each.spec.node_name in nodes
        and handling(each, nodes[each.spec.node_name], world.daemon_sets, world.now) is not Handling.LEAVE
    ]


def check(story: Story, outcome: Outcome) -> None:
    world = story.world
    removed = [pool for pool in world.deployments if pool not in world.wanted]
    written = [action.id for action in outcome.actions]
    assert len(set(written)) == len(written)
    for action in outcome.actions:
        subject = action.object
        if action.verb is Verb.EVICT:
            [on] = action.disrupts
            assert _parts(on)[0] in removed
            assert world.policy == "Drain"
        elif subject.kind == "Node":
            pool = _parts(subject.name)[0]
            assert pool in world.deployments
            is_opening = "unschedulable" in str(outcome.write(action).body.get("spec")) and pool in world.wanted
            assert not (is_opening and subject.name in story.closed_by_others)
        else:
            assert subject.name in {names.deployment("prod", pool) for pool in POOLS}
        if action.verb is Verb.DELETE:
            pool = subject.name.removeprefix("prod-pool-")
            assert pool in removed
            assert world.policy != "Drain" or not evictable(world, pool)


@settings(max_examples=300, deadline=None)
@given(stories(), st.lists(events, max_size=25))
def test_no_pool_is_deleted_under_its_pods_and_nothing_of_others_is_touched(story: Story, told: list[Any]) -> None:
    for number, event in enumerate(told):
        outcome = story.world.plan()
        check(story, outcome)
        if event[0] == "pass":
            ids = [action.id for action in outcome.actions]
            lost = [id for position, id in enumerate(ids) if position in event[1]]
            story = replace(story, world=story.world.done(outcome, story.refused, lost).settled())
        else:
            story = happen(story, event, number)


@settings(max_examples=200, deadline=None)
@given(stories(), st.lists(events, max_size=15))
def test_without_blockers_removed_pools_are_gone_and_the_others_unchanged(story: Story, told: list[Any]) -> None:
    for number, event in enumerate(told):
        if event[0] == "pass":
            world = story.world
            story = replace(story, world=world.done(world.plan(), story.refused).settled())
        else:
            story = happen(story, event, number)
    freed = tuple(
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, finalizers=()))
        for each in story.world.pods or ()
    )
    end = story.world.but(pods=freed).settled().converged()
    assert set(end.deployments) == set(story.world.deployments) & set(story.world.wanted)
    for pool, each in end.deployments.items():
        assert not each["metadata"].get("annotations")
        assert each["spec"]["template"]["spec"] == deployment(pool)["spec"]["template"]["spec"]
        assert not each["spec"]["template"]["metadata"].get("annotations")
    known = {each.node for each in end.machines}
    for name, left in (end.nodes or {}).items():
        if name in known and _parts(name)[0] in end.deployments:
            assert names.CORDONED_BY not in left.metadata.annotations
            assert POOL_DRAINING not in left.metadata.annotations
            assert left.spec.unschedulable == (name in story.closed_by_others)


@settings(max_examples=100, deadline=None)
@given(stories())
def test_equal_snapshots_give_equal_plans(story: Story) -> None:
    one, other = story.world.plan(), story.world.plan()
    assert one.actions == other.actions
    assert one.builder.blocked == other.builder.blocked
    assert one.builder.wake_at == other.builder.wake_at
