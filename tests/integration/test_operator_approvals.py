"""Approving a held plan by its id, and explaining: what the command line does, in process."""

import dataclasses

import msgspec
import pytest
from tests.builders.labels import API_VERSION, LABELS, RULES
from tests.builders.managers import empty_world

from nodeyard.app.approvals import NotHeld, approve
from nodeyard.app.dry_planner import dry_planning
from nodeyard.app.explanations import compose_answers
from nodeyard.app.operators import Operators
from nodeyard.kube.names import APPROVE, PAUSED
from nodeyard.plan.brake import Limit, parse_limit
from nodeyard.plan.model import ObjectRef


@pytest.fixture
async def world(clock):
    async with empty_world(clock) as world:
        await world.add_rule("a", "blue", disruptive=True)
        await world.add_nodes("a", "n1", "n2", "n3")
        yield world


async def test_the_held_plan_is_found_by_its_id_whatever_the_limit_and_runs(world, clock):
    async with world.manager(limit=parse_limit("2,10%")) as manager:
        await clock.advance(5)
        (held,) = manager.controllers[0].held.values()
        async with dry_planning(world.client, [LABELS], clock) as inspection:
            approved = await approve(world.client, inspection, held.id)
        assert (approved.root.kind, approved.root.name) == ("LabelRule", "a")
        await clock.advance(5)
        assert set((await world.teams()).values()) == {"blue"}


async def test_an_id_that_no_plan_has_is_refused_with_those_there_are(world, clock):
    async with dry_planning(world.client, [LABELS], clock) as inspection:
        (look,) = inspection.plans(Limit(nodes=0, percent=0))
        with pytest.raises(NotHeld, match=rf"there are: {look.braked.held.id} \(labels\)"):
            await approve(world.client, inspection, "nothing")


async def test_a_part_that_is_held_beside_others_within_the_limit_is_approved_alone(world, clock):
    def plan(snapshot, now, explain):
        planned = LABELS.plan(snapshot, now, explain)
        first, *others = planned.plan.actions
        first = msgspec.structs.replace(first, approval_group="first", always_asks=True)
        actions = (first, *(msgspec.structs.replace(each, approval_group="others") for each in others))
        return msgspec.structs.replace(planned, plan=msgspec.structs.replace(planned.plan, actions=actions))

    async with dry_planning(world.client, [dataclasses.replace(LABELS, plan=plan)], clock) as inspection:
        (look,) = inspection.plans(Limit())
        held = look.braked.held
        assert [each.object.name for each in held.actions] == ["n1"]
        await approve(world.client, inspection, held.id)
    assert (await world.rule("a")).metadata.annotations[APPROVE] == held.id


async def test_a_dry_planner_plans_and_explains_but_changes_nothing(world, clock):
    async with dry_planning(world.client, [LABELS], clock) as inspection:
        (look,) = inspection.plans(Limit())
        assert look.has_changes
        assert [action.object.name for action in look.braked.now.actions] == ["n1", "n2", "n3"]
        ref = ObjectRef(api_version=API_VERSION, kind="LabelRule", name="a")
        assert [(look.capability.name, decision.rule) for look, decision in inspection.why(ref)] == [
            ("labels", "Ruled")
        ]
        assert inspection.why(ObjectRef(api_version="v1", kind="Pod", name="p", namespace="x")) == []
    assert set((await world.teams()).values()) == {None}


async def test_a_paused_object_is_planned_and_explained_as_paused(world, clock):
    paused = {"metadata": {"annotations": {PAUSED: "true"}}}
    await world.client.patch(RULES, "a", paused)
    async with dry_planning(world.client, [LABELS], clock) as inspection:
        (look,) = inspection.plans(Limit(nodes=0, percent=0))
        assert (look.has_changes, look.braked.now.actions) == (False, ())
        (blocked,) = look.braked.now.blocked
        text = f"LabelRule a is paused by annotation {PAUSED}: nothing is written for it until that is removed"
        assert (str(blocked.object), blocked.reason, blocked.facts.text()) == ("LabelRule a", "Paused", text)
        ref = ObjectRef(api_version=API_VERSION, kind="LabelRule", name="a")
        (answer,) = compose_answers(inspection.why(ref), Operators(error="unknown"), ref, {})
        assert answer.reasons == ("Paused", "Ruled")
        with pytest.raises(NotHeld, match="there are: none"):
            await approve(world.client, inspection, "nothing")


async def test_objects_of_files_replace_existing_ones_in_a_dry_plan(world, clock):
    async with dry_planning(world.client, [LABELS], clock) as inspection:
        rule = {"apiVersion": API_VERSION, "kind": "LabelRule", "metadata": {"name": "a"}, "spec": {"team": "red"}}
        await inspection.overlay([rule])
        (look,) = inspection.plans(Limit())
        assert {change.to for action in look.braked.now.actions for change in action.diff} == {"red"}
