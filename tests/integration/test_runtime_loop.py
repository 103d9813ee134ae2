"""The whole loop with the sixth capability: watch, plan, apply, status, events. In process, under virtual time."""

import dataclasses
import threading
from datetime import timedelta

import pytest
from tests.builders import labels
from tests.builders.managers import empty_world

from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, NODES, untyped
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.runtime.capability import Watch
from nodeyard.runtime.reconcile.plan_executor import ThreadPlanExecutor
from nodeyard.watch.reflector import SILENT_SECONDS


@pytest.fixture
async def world(clock):
    async with empty_world(clock) as world:
        yield world


async def test_a_rule_is_carried_out(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1", "n2")
    await world.add_nodes("b", "n3")
    async with world.manager():
        await clock.advance(5)
        assert await world.teams() == {"n1": "blue", "n2": "blue", "n3": None}


async def test_a_core_kind_and_a_kind_of_the_same_name_are_distinguished(world, clock):
    others = Watch(untyped("other.test", "v1", "nodes", "Node", namespaced=False), optional=True)

    def collect(view, key, _now):
        return labels.Snapshot(view.get("LabelRule", key), tuple(view.indexed("Node.core", "rule", key)))

    capability = dataclasses.replace(
        labels.LABELS, watches=(*labels.LABELS.watches, others), aggregates=(), collect=collect
    )
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager(capability=capability):
        await clock.advance(5)
        assert await world.teams() == {"n1": "blue"}


async def test_status_and_one_event_follow_the_writes(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1", "n2")
    async with world.manager():
        await clock.advance(5)
        rule = await world.rule("a")
        assert (rule.status.labelled, rule.status.observed_generation) == (2, rule.metadata.generation)
        assert [event["note"] for event in await world.events("Labelled")] == ["2 nodes: n1, n2"]


async def test_a_new_node_is_acted_on_within_a_fraction_of_a_second(world, clock):
    await world.add_rule("a", "blue")
    async with world.manager():
        await clock.advance(5)
        await world.add_nodes("a", "n1")
        await clock.advance(0.2)
        assert await world.teams() == {"n1": "blue"}


async def test_a_changed_rule_reaches_the_nodes_it_already_has(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager():
        await clock.advance(5)
        await world.client.patch(labels.RULES, "a", {"spec": {"team": "red"}})
        await clock.advance(1)
        assert await world.teams() == {"n1": "red"}


async def test_an_executed_plan_is_not_planned_again(world, clock):
    await world.add_rule("a", "blue")
    async with world.manager() as manager:
        await clock.advance(5)
        before = plans(manager)
        for number in range(1, 4):
            await world.add_nodes("a", f"n{number}")
            await clock.advance(1)
            assert (await world.teams())[f"n{number}"] == "blue"
            assert plans(manager) == before + number


async def test_a_change_by_another_just_after_our_write_is_planned_with(world, clock):
    await world.add_rule("a", "blue")
    async with world.manager() as manager:
        await clock.advance(5)
        before = plans(manager)
        meddled = []

        async def meddle(_method, path):
            if path.endswith("/labelrules/a/status") and not meddled:
                meddled.append(path)
                await world.client.patch(NODES, "n1", {"metadata": {"labels": {labels.TEAM: "wrong"}}})

        manager.tap.before = meddle
        await world.add_nodes("a", "n1")
        await clock.advance(1)
        assert meddled
        assert await world.teams() == {"n1": "blue"}
        assert plans(manager) == before + 2


def plans(manager):
    return sum(
        sample.value
        for family in manager.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "nodeyard_plan_seconds_count"
    )


async def test_drift_is_repaired(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager():
        await clock.advance(5)
        await world.client.patch(NODES, "n1", {"metadata": {"labels": {labels.TEAM: "wrong"}}})
        await clock.advance(1)
        assert await world.teams() == {"n1": "blue"}


async def test_when_all_is_as_it_should_be_nothing_is_written(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1", "n2")
    async with world.manager() as manager:
        await clock.advance(5)
        assert len(manager.tap.written("/nodes/")) == 2
        before = len(manager.tap.writes) - len(manager.tap.written("/leases"))
        await clock.advance(1500)
        after = len(manager.tap.writes) - len(manager.tap.written("/leases"))
        assert after == before


async def test_a_node_that_only_reports_itself_costs_no_plan(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager() as manager:
        await clock.advance(5)
        before = await passes(manager)
        for number in range(20):
            await world.client.patch(NODES, "n1", {"metadata": {"annotations": {"beat": str(number)}}})
            await clock.advance(1)
        assert await passes(manager) == before


async def test_events_of_one_moment_are_one_plan(world, clock):
    await world.add_rule("a", "blue")
    async with world.manager() as manager:
        await clock.advance(5)
        before = await passes(manager)
        await world.add_nodes("a", *(f"n{number}" for number in range(50)))
        await clock.advance(5)
        assert set((await world.teams()).values()) == {"blue"}
        # One plan for the new objects, and one that sees its writes.
        assert await passes(manager) - before <= 2


async def test_a_plan_wakes_when_it_said_it_would(world, clock):
    start = clock.now() + timedelta(minutes=7)
    await world.add_rule("a", "blue", notBefore=format_rfc3339(start))
    await world.add_nodes("a", "n1")
    async with world.manager():
        await clock.advance(410)
        assert await world.teams() == {"n1": None}
        assert (await world.rule("a")).status.refused == "TooEarly"
        await clock.advance(15)
        assert await world.teams() == {"n1": "blue"}


async def test_a_rule_that_makes_the_planner_fail_breaks_only_itself(world, clock):
    await world.add_rule("bad", "red", unbearable=True)
    await world.add_rule("good", "blue")
    await world.add_nodes("bad", "n1")
    await world.add_nodes("good", "n2")
    async with world.manager() as manager:
        await clock.advance(60)
        assert await world.teams() == {"n1": None, "n2": "blue"}
        failed = await ended(manager, "error")
        assert 5 <= failed <= 15
        await world.client.patch(labels.RULES, "bad", {"spec": {"unbearable": False}})
        await clock.advance(1)
        assert (await world.teams())["n1"] == "red"


async def test_a_deleted_rule_is_forgotten(world, clock):
    await world.add_rule("a", "blue")
    async with world.manager() as manager:
        await clock.advance(5)
        await world.client.delete(labels.RULES, "a")
        await clock.advance(5)
        assert await ended(manager, "gone") >= 1
        await world.add_nodes("a", "n1")
        await clock.advance(5)
        assert await world.teams() == {"n1": None}


async def test_a_paused_rule_is_left_alone_until_it_is_not(world, clock):
    await world.add_rule("a", "blue", annotations={"nodeyard.dev/paused": "true"})
    await world.add_rule("b", "red")
    await world.add_nodes("a", "n1")
    await world.add_nodes("b", "n2")
    async with world.manager():
        await clock.advance(60)
        assert await world.teams() == {"n1": None, "n2": "red"}
        await world.annotate("a", paused=None)
        await clock.advance(1)
        assert (await world.teams())["n1"] == "blue"


async def test_changes_that_are_seen_only_by_a_relist_are_acted_on_too(world, clock):
    await world.add_rule("a", "blue")
    async with world.manager() as manager:
        await clock.advance(5)
        await world.add_nodes("a", "n1")
        await clock.advance(700)
        assert await world.teams() == {"n1": "blue"}
        assert manager.health().ready["synced"]() == ""


async def test_a_watch_without_events_and_bookmarks_makes_readiness_fail_until_it_recovers(world, clock):
    async with world.manager() as manager:
        health = manager.health()
        assert "starting" in health.ready["synced"]()
        await clock.advance(5)
        assert [check() for check in health.ready.values()] == ["", ""]
        manager.tap.refuses_streams = True
        await clock.advance(900)
        assert "nodes silent for" in health.ready["watches"]()
        assert [check() for check in health.live.values()] == ["", "", ""]
        manager.tap.refuses_streams = False
        await clock.advance(120)
        assert health.ready["watches"]() == ""


@pytest.mark.parametrize("is_deleted", [False, True], ids=["silent", "definition deleted"])
async def test_a_capability_with_one_broken_watch_is_reported_and_stays_in_service(world, clock, is_deleted):
    async with world.manager() as manager:
        await clock.advance(5)
        if is_deleted:
            await world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{labels.RULES.plural}.{labels.RULES.group}")
        else:
            manager.tap.silences = labels.RULES.plural
        await clock.advance(900)
        health = manager.health()
        assert "labelrules.labels.test silent for" in health.warnings["labels"]()
        assert [check() for check in health.ready.values()] == ["", ""]


async def test_behind_a_watch_that_has_fallen_silent_a_root_is_read_before_nodes_are_written(world, clock):
    await world.add_rule("a", "blue")
    async with world.manager() as manager:
        await clock.advance(5)
        manager.tap.silences = labels.RULES.plural
        await world.client.patch(labels.RULES, "a", {"spec": {"team": "red"}})
        # Longer than the bookmark interval, and shorter than the idle timeout of the watch.
        await clock.advance(SILENT_SECONDS + 1)
        await world.add_nodes("a", "n1")
        await clock.advance(1)
        assert len([path for path in manager.tap.streams if labels.RULES.plural in path]) == 1
        assert await world.teams() == {"n1": "red"}
        assert len(manager.tap.written("/nodes/n1")) == 1, "it was never blue"


async def test_capabilities_share_watches_and_connections_but_not_their_leases_and_faults(world, clock):
    def broken(*_):
        raise KeyError("surprise")

    other = dataclasses.replace(labels.LABELS, name="other", plan=broken)
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager(more=[other]) as manager:
        await clock.advance(10)
        assert await world.teams() == {"n1": "blue"}
        assert len([path for path in manager.tap.streams if path.endswith("/nodes")]) == 1
        leases = [each["metadata"]["name"] for each in (await world.client.list(LEASES)).items]
        assert sorted(leases) == ["nodeyard-labels", "nodeyard-other"]


async def test_planners_run_in_a_thread_of_their_own(world, clock):
    threads = set()

    def plan(snapshot, now, explain):
        threads.add(threading.current_thread().name)
        return labels.plan(snapshot, now, explain)

    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    noting = dataclasses.replace(labels.LABELS, plan=plan)
    async with world.manager(capability=noting, plan_executor=ThreadPlanExecutor):
        for _ in range(1000):
            await clock.advance(0.05)
            if (await world.teams())["n1"] == "blue":
                break
        assert await world.teams() == {"n1": "blue"}
    assert threads == {"plan-labels_0"}


async def test_a_plan_that_does_not_end_fails_liveness(world, clock):
    begun, go_on = threading.Event(), threading.Event()

    def plan(snapshot, now, explain):
        begun.set()
        go_on.wait(60)
        return labels.plan(snapshot, now, explain)

    await world.add_rule("a", "blue")
    stuck = dataclasses.replace(labels.LABELS, plan=plan)
    async with world.manager(capability=stuck, plan_executor=lambda name: ThreadPlanExecutor(name, clock)) as manager:
        live = manager.health().live
        while not begun.is_set():
            await clock.advance(0.05)
        await clock.advance(290)
        assert live["plans"]() == ""
        await clock.advance(20)
        assert live["plans"]().startswith("one plan is running: labels for 31")
        go_on.set()
        while live["plans"]():
            await clock.advance(0.05)


async def passes(manager):
    return sum(value for labels_, value in await series(manager, "nodeyard_reconciles_total"))


async def ended(manager, result):
    found = await series(manager, "nodeyard_reconciles_total")
    return sum(value for labels_, value in found if labels_.get("result") == result)


async def series(manager, name):
    return [
        (sample.labels, sample.value)
        for family in manager.metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    ]
