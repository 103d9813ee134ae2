"""Passes without writes: the brake, observe-only mode, and a running peer operator."""

import pytest
from tests.builders import labels
from tests.builders.managers import cut, empty_world

from nodeyard.client.errors import AdmissionDenied, Status
from nodeyard.client.resources import LEASES, NAMESPACES, NODES
from nodeyard.kube.names import APPROVE, NAMESPACE
from nodeyard.kube.timestamps import format_rfc3339_micro
from nodeyard.plan.brake import parse_limit

FEW = parse_limit("2,10%")


@pytest.fixture
async def world(clock):
    async with empty_world(clock) as world:
        yield world


async def many(world, **options):
    await world.add_rule("a", "blue", disruptive=True, **options)
    await world.add_nodes("a", "n1", "n2", "n3")


async def test_too_much_at_once_waits_for_approval_and_runs_when_it_is_given(world, clock):
    await many(world)
    async with world.manager(limit=FEW) as manager:
        await clock.advance(60)
        assert set((await world.teams()).values()) == {None}
        assert (await world.rule("a")).status.refused == "NeedsApproval"
        (held,) = manager.controllers[0].held.values()
        await world.annotate("a", approve=held.id)
        await clock.advance(1)
        assert set((await world.teams()).values()) == {"blue"}
        assert manager.controllers[0].held == {}


async def test_an_approval_is_for_one_plan_and_not_for_the_next(world, clock):
    await many(world)
    async with world.manager(limit=FEW) as manager:
        await clock.advance(5)
        (held,) = manager.controllers[0].held.values()
        await world.annotate("a", approve=held.id)
        await clock.advance(5)
        await world.client.patch(labels.RULES, "a", {"spec": {"team": "red"}})
        await clock.advance(5)
        assert set((await world.teams()).values()) == {"blue"}
        (next_held,) = manager.controllers[0].held.values()
        assert next_held.id != held.id


async def test_an_approval_ends_with_its_last_action(world, clock):
    await many(world)
    async with world.manager(limit=FEW) as manager:
        await clock.advance(5)
        (held,) = manager.controllers[0].held.values()
        await world.annotate("a", approve=held.id)
        await clock.advance(5)
        assert set((await world.teams()).values()) == {"blue"}
        assert APPROVE not in (await world.rule("a")).metadata.annotations

        for name in await world.teams():
            await world.client.patch(NODES, name, {"metadata": {"labels": {labels.TEAM: None}}})
        await clock.advance(60)

        assert set((await world.teams()).values()) == {None}
        assert [each.id for each in manager.controllers[0].held.values()] == [held.id]


async def test_an_approval_stays_while_its_actions_fail_or_the_rule_is_paused(world, clock):
    await many(world)
    async with world.manager(limit=FEW) as manager:
        await clock.advance(5)
        (held,) = manager.controllers[0].held.values()
        manager.tap.fail = lambda method, path: cut(method, path) if method == "PATCH" and "/nodes/" in path else None
        await world.annotate("a", approve=held.id)
        await clock.advance(60)
        assert (await world.rule("a")).metadata.annotations[APPROVE] == held.id
        await world.annotate("a", paused="true")
        manager.tap.fail = lambda _method, _path: None
        await clock.advance(60)
        assert (await world.rule("a")).metadata.annotations[APPROVE] == held.id
        await world.annotate("a", paused=None)
        await clock.advance(60)
        assert set((await world.teams()).values()) == {"blue"}


async def test_an_approved_write_that_admission_denied_counts_again_when_it_is_retried(world, clock):
    await many(world)
    text = 'admission webhook "guard.test" denied the request: not now'
    denial = AdmissionDenied(Status(code=403, reason="Forbidden", message=text), denied_by="guard.test")
    async with world.manager(limit=FEW) as manager:
        await clock.advance(5)
        (held,) = manager.controllers[0].held.values()
        manager.tap.fail = lambda method, path: denial if method == "PATCH" and "/nodes/" in path else None
        await world.annotate("a", approve=held.id)
        await clock.advance(5)
        assert manager.controllers[0].held == {}
        await world.annotate("a", approve="")
        await clock.advance(1)
        manager.tap.fail = lambda _method, _path: None
        await clock.advance(300)
        assert set((await world.teams()).values()) == {None}
        assert [each.id for each in manager.controllers[0].held.values()] == [held.id]
        await world.annotate("a", approve=held.id)
        await clock.advance(1)
        assert set((await world.teams()).values()) == {"blue"}


async def test_an_approval_of_another_plan_releases_nothing(world, clock):
    await many(world, annotations={"nodeyard.dev/approve": "0123456789ab"})
    async with world.manager(limit=FEW):
        await clock.advance(60)
        assert set((await world.teams()).values()) == {None}


async def test_a_few_need_no_approval(world, clock):
    await world.add_rule("a", "blue", disruptive=True)
    await world.add_nodes("a", "n1", "n2")
    async with world.manager(limit=FEW):
        await clock.advance(5)
        assert set((await world.teams()).values()) == {"blue"}


async def test_observing_writes_nothing_but_the_lease(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager(observe=True) as manager:
        await clock.advance(120)
        assert await world.teams() == {"n1": None}
        assert manager.tap.written("/leases")
        assert (
            set(manager.tap.writes)
            - {
                (method, path)
                for method, path in manager.tap.writes
                if "/leases" in path or path.endswith("/namespaces")
            }
            == set()
        )
        assert shown(manager, "nodeyard_plan_actions") == [1.0]
        assert shown(manager, "nodeyard_observing") == [1.0]


class PeerLease:
    """The operator that the capability replaces, renewing its lease."""

    def __init__(self, world):
        self._world = world

    async def beat(self):
        spec = {"holderIdentity": "it", "renewTime": format_rfc3339_micro(self._world.clock.now())}
        lease = {"metadata": {"name": labels.PEER, "namespace": NAMESPACE}, "spec": spec}
        await self._world.client.managed_by("peer").apply(LEASES, lease, force=True)

    async def live(self, seconds):
        for _ in range(0, seconds, 5):
            await self.beat()
            await self._world.clock.advance(5)


async def test_a_running_peer_operator_leads_to_observe_only_mode_and_is_reported(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    await namespace(world)
    peer = PeerLease(world)
    await peer.beat()
    async with world.manager() as manager:
        await peer.live(60)
        assert await world.teams() == {"n1": None}
        assert shown(manager, "nodeyard_observing") == [1.0]
        (event,) = await world.events("ReplacedOperatorRunning")
        assert event["note"] == "labels-peer is still running: nothing is written. Scale it down first."
        assert event["regarding"]["name"] == "a"
        await clock.advance(60)
        assert await world.teams() == {"n1": "blue"}
        assert shown(manager, "nodeyard_observing") == [0.0]


async def test_with_take_over_it_writes_although_the_peer_operator_runs(world, clock):
    await namespace(world)
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    peer = PeerLease(world)
    await peer.beat()
    async with world.manager(take_over=True):
        await peer.live(10)
        assert await world.teams() == {"n1": "blue"}


async def namespace(world):
    await world.client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})


def shown(manager, name):
    return [
        sample.value
        for family in manager.metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    ]
