"""The background loop of a capability: it gets keys at once, and plans read its results."""

import asyncio
import threading
from dataclasses import replace

import msgspec
import pytest
from tests.builders import labels
from tests.builders.operators import fleet as fleet_on
from tests.builders.operators import operator, until

from nodeyard.app.dry_planner import dry_planning
from nodeyard.plan.brake import Limit
from nodeyard.process.aio import first_of
from nodeyard.runtime.capability import Background
from nodeyard.testing import third_party_crds


@pytest.fixture
async def fleet(api):
    async with fleet_on(api.kubeconfig) as fleet:
        yield fleet


def collect(view, key, now):
    """Return a capability whose team comes from the loop's result."""
    snapshot = labels.collect(view, key, now)
    if snapshot is None:
        return None
    team = view.finding(f"team/{key}") or "unknown"
    spec = msgspec.structs.replace(snapshot.rule.spec, team=team)
    return replace(snapshot, rule=msgspec.structs.replace(snapshot.rule, spec=spec))


class Loop:
    """Publishes the name of its thread for each key of its input, and removes it with the key."""

    def __init__(self):
        self.known = {}
        self.rounds = 0

    async def __call__(self, context):
        while not context.stopped.is_set():
            context.changed.clear()
            self.rounds += 1
            inputs = {key: value for key, value in context.inputs.items() if context.fence_of(key).may_write()}
            for key in inputs.keys() - self.known.keys():
                context.publish(f"team/{key}", threading.current_thread().name, keys=(key,))
            for key in self.known.keys() - inputs.keys():
                context.publish(f"team/{key}", None)
            self.known = inputs
            await first_of(context.stopped.wait(), context.changed.wait())


@pytest.mark.parametrize("is_sharded", [False, True], ids=["single leader", "sharded"])
async def test_a_finding_that_a_loop_publishes_is_planned_with_at_once(api, fleet, is_sharded):
    loop = Loop()
    capability = replace(
        labels.LABELS,
        collect=collect,
        background=Background((loop,), lambda snapshot, _now: snapshot.rule.metadata.uid),
        is_sharded=is_sharded,
    )
    async with operator(api.kubeconfig, capability=capability) as running:
        await fleet.add_rule("a", "ignored")
        await fleet.add_nodes("a", 2)
        await fleet.are_all("leases")
        controller, key = running.manager.controllers[0], fleet.name("a")
        view = controller.view
        assert loop.known[key] == (await fleet.rule("a")).metadata.uid
        assert view.finding(f"team/{key}") == "leases"

        await fleet.client.delete(labels.RULES, key)
        await until(lambda: _is(lambda: key not in loop.known), "the loop has heard that it is gone")
        await until(lambda: _is(lambda: view.finding(f"team/{key}") is None), "what it said is taken back")
        if is_sharded:
            await until(lambda: _is(lambda: not controller.fence_of(key).may_write()), "its share is given up")
        await fleet.client.create(labels.RULES, labels.rule(key, "ignored"))
        await until(lambda: _is(lambda: view.finding(f"team/{key}") == "leases"), "it is looked at again")

        rounds = loop.rounds
        await fleet.add_nodes("a", 1)
        await fleet.are_all("leases")
        assert loop.rounds == rounds, "nobody is woken for what is as it was"


async def test_without_a_loop_there_are_no_findings(api, fleet):
    third_party_crds.install(api.rest, [labels.definition()])
    await fleet.add_rule("b", "ignored")
    await fleet.add_nodes("b", 1)
    async with dry_planning(fleet.client, [replace(labels.LABELS, collect=collect)]) as inspection:
        (look,) = [each for each in inspection.plans(Limit()) if each.key == fleet.name("b")]
    assert [action.facts.team for action in look.braked.now.actions] == ["unknown"]


async def _is(condition):
    await asyncio.sleep(0)
    return condition()
