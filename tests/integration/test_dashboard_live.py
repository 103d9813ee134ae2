"""The live state of the page, under virtual time: plans of keys that others reconcile, and own passes."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random

import pytest
from tests.builders.labels import API_VERSION, LABELS
from tests.builders.managers import empty_world

from nodeyard.dashboard.live import Live
from nodeyard.plan.brake import parse_limit
from nodeyard.runtime.annotations import ref_of
from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor
from nodeyard.runtime.surface import Attention, Severity, Surface, Tile, TileState
from nodeyard.sim.embedded import connect
from nodeyard.watch.informers import InformerFactory


@pytest.fixture
async def world(clock):
    async with empty_world(clock) as world:
        await world.add_rule("a", "blue", disruptive=True)
        await world.add_nodes("a", "n1", "n2", "n3")
        yield world


class Counting(InlinePlanExecutor):
    """Plan executor that plans inline and counts plans."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    async def __call__(self, work):
        self.calls += 1
        return await super().__call__(work)


@asynccontextmanager
async def following(live, *more):
    tasks = [asyncio.create_task(each) for each in (live.run(), *more)]
    try:
        yield live
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        live.close()


@asynccontextmanager
async def alone(world, clock, capability=LABELS, **options):
    client = connect(world.server)
    watches = InformerFactory(client, clock, Random(1))
    live = Live(watches, [capability], clock, executor=options.pop("executor", InlinePlanExecutor()), **options)
    async with following(live, watches.run()):
        await clock.advance(5)
        yield live


def beside(manager, clock, executor=None):
    (controller,) = manager.controllers
    live = Live(
        manager.informers,
        [controller.capability],
        clock,
        is_led=lambda _capability, key: controller.fence_of(key).may_write(),
        executor=executor or InlinePlanExecutor(),
    )
    manager.pass_observers.append(live.planner.observe)
    return live


def plans(live):
    return {plan.key: plan for plan in live.feed.part("plans", None)}


async def test_plans_follow_the_cluster(world, clock):
    async with alone(world, clock) as live:
        (plan,) = plans(live).values()
        assert [group.count for group in plan.groups] == [3]
        await world.add_nodes("a", "n4")
        await clock.advance(3)
        (plan,) = plans(live).values()
        assert [group.count for group in plan.groups] == [4]
        assert [each.name for each in plan.groups[0].samples] == ["n1", "n2", "n3", "n4"]


async def test_a_completed_plan_disappears(world, clock):
    async with alone(world, clock) as live:
        assert plans(live)
        async with world.manager(limit=parse_limit("99")):
            await clock.advance(10)
        await clock.advance(5)
        assert plans(live) == {}
        assert set((await world.teams()).values()) == {"blue"}


async def test_the_limit_of_the_operator_decides_what_is_held(world, clock):
    async with alone(world, clock) as live:
        live.planner.set_limits({"labels": parse_limit("2")})
        await clock.advance(3)
        (plan,) = plans(live).values()
        assert (plan.held.nodes, plan.held.actions, plan.groups) == (3, 3, ())
        (item,) = live.feed.part("attention", None)
        assert (item.kind, item.object.name, item.link["key"]) == ("HeldPlan", "a", plan.key)
        live.planner.set_limits({"labels": parse_limit("99")})
        await clock.advance(3)
        assert live.feed.part("attention", None) == []


async def test_a_key_is_planned_once_for_a_burst_of_changes(world, clock):
    executor = Counting()
    async with alone(world, clock, executor=executor):
        before = executor.calls
        for number in range(20):
            await world.add_nodes("a", f"burst{number}")
        await clock.advance(5)
        assert executor.calls - before <= 6


async def test_keys_that_this_process_leads_are_not_planned_twice(world, clock):
    executor = Counting()
    async with (
        world.manager(limit=parse_limit("2")) as manager,
        following(beside(manager, clock, executor)) as live,
    ):
        await clock.advance(10)
        (plan,) = plans(live).values()
        (held,) = manager.controllers[0].held.values()
        assert plan.held.id == held.id
        folds = executor.calls
        live.planner.mark_all()
        await clock.advance(5)
        assert executor.calls == folds


async def test_writes_of_a_pass_are_not_shown_as_pending(world, clock):
    async with world.manager(limit=parse_limit("99")) as manager, following(beside(manager, clock)) as live:
        await clock.advance(10)
        assert set((await world.teams()).values()) == {"blue"}
        assert plans(live) == {}


async def test_a_paused_key_is_shown_as_paused_and_not_as_it_was_before(world, clock):
    async with world.manager(limit=parse_limit("2")) as manager, following(beside(manager, clock)) as live:
        await clock.advance(10)
        (plan,) = plans(live).values()
        assert plan.held
        await world.annotate("a", paused="true")
        await clock.advance(10)
        (plan,) = plans(live).values()
        assert (plan.held, plan.groups) == (None, ())
        assert [each.reason for each in plan.blocked] == ["Paused"]
        await world.annotate("a", paused=None)
        await clock.advance(10)
        (plan,) = plans(live).values()
        assert plan.held


async def test_a_follower_plans_for_its_own_page(world, clock):
    async with world.manager("leader", limit=parse_limit("2")):
        await clock.advance(5)
        async with (
            world.manager("follower", limit=parse_limit("2")) as manager,
            following(beside(manager, clock)) as live,
        ):
            live.planner.set_limits({"labels": parse_limit("2")})
            await clock.advance(10)
            assert not manager.controllers[0].fence.may_write()
            (plan,) = plans(live).values()
            assert plan.held.actions == 3


async def test_surfaces_are_read_when_something_changes(world, clock):
    def attention(view, _now):
        for rule in view.all("LabelRule"):
            yield Attention(
                kind="Shortage",
                severity=Severity.WARNING,
                object=ref_of(rule, API_VERSION, "LabelRule"),
                reason="Few",
                message=f"{len(view.all('Node'))} nodes",
            )

    surface = Surface(tile=lambda _view, _name: Tile(state=TileState.CLAIMED, hue="x"), attention=attention)
    async with alone(world, clock, replace(LABELS, surface=surface)) as live:
        assert [each.message for each in live.feed.part("attention", None)] == ["3 nodes"]
        assert {row.hue for row in live.feed.rows.values()} == {"x"}
        await world.add_nodes("a", "n4")
        await clock.advance(3)
        assert [each.message for each in live.feed.part("attention", None)] == ["4 nodes"]
        assert live.history.read(live.feed.now)["changes"][-1][1].name == "n4"


async def test_a_failing_surface_leaves_the_rest_of_the_page(world, clock):
    def fail(_view, _now):
        raise ValueError("bug")

    surface = Surface(attention=fail, rollouts=fail, places=fail)
    async with alone(world, clock, replace(LABELS, surface=surface)) as live:
        assert plans(live)
        assert len(live.feed.rows) == 3


async def test_the_operators_reservations_are_left_alone(world, clock):
    async with world.manager(limit=parse_limit("2")) as manager:
        (controller,) = manager.controllers
        async with following(beside(manager, clock)) as live:
            controller.view.reservations.reserve("k", {"budget": "token"})
            await clock.advance(10)
            await live.planner.explain(next(iter(live.feed.part("attention", None))).object, None)
            assert controller.view.reserved("budget") == {"k": "token"}
