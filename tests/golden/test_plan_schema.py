"""Every plan of the golden worlds has the form that docs/schema/plan.schema.json publishes."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import yaml

from nodeyard.capabilities.pools import plan as pools
from nodeyard.plan.model import Plan, to_wire

from ..builders.json_schema import problems
from ..builders.pool_objects import running
from ..builders.pools import NOW, cluster, pool, snapshot
from ..builders.tree_state import TreeState
from .affinity import test_tenants_story as tenants
from .clustertree import transcript as trees
from .plan import stories
from .profiles import test_story as profiles
from .spares import transcript as spares

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parents[1] / "docs/schema/plan.schema.json").read_text())


def wire(plan):
    return msgspec.json.decode(msgspec.json.encode(to_wire(plan)))


@pytest.fixture
def plans(monkeypatch):
    """Record what the planners of the worlds answer, and validate it at the end."""
    seen: list[Plan] = []

    def record(owner, name):
        planner = getattr(owner, name)

        def recording(*arguments):
            planned = planner(*arguments)
            seen.append(planned.plan)
            return planned

        monkeypatch.setattr(owner, name, recording)

    record(spares, "plan")
    record(TreeState, "plan")
    record(tenants, "planned")
    record(profiles, "plan")
    record(pools, "plan")
    yield seen
    assert any(each.actions for each in seen)
    assert [problem for each in seen for problem in problems(SCHEMA, wire(each))] == []


@pytest.mark.parametrize("path", sorted(HERE.glob("spares/*.yaml")), ids=lambda path: path.stem)
def test_plans_of_spares(plans, path):
    spares.play(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("path", sorted(HERE.glob("clustertree/*.yaml")), ids=lambda path: path.stem)
def test_plans_of_clustertree(plans, path):
    trees.play(yaml.safe_load(path.read_text()))


def test_plans_of_affinity(plans):
    tenants.told()


def test_plans_of_profiles(plans):
    for name in profiles.NODES:
        story = profiles.story(name)
        profiles.plan(story, NOW, [profiles.node_ref(story)])
    assert any(each.decisions for each in plans)


def test_plans_of_pools(plans):
    pools.plan(snapshot(cluster("c", workerPools={"a": pool(3)})), NOW)
    world = running(cluster("c", controlPlane=3, workerPools={"a": pool(3)}))
    pools.plan(replace(world, cluster=cluster("c", controlPlane=1, workerPools={"a": pool(5)})), NOW)


@pytest.mark.parametrize("name", ["nothing", "claims", "release", "braked", "refusals"])
def test_plans_of_the_texts_and_their_list(name):
    plan = wire(getattr(stories, name)())
    assert list(problems(SCHEMA, plan)) == []
    assert list(problems(SCHEMA, {"apiVersion": plan["apiVersion"], "kind": "PlanList", "items": [plan]})) == []


def test_candidates_and_advice_have_messages():
    plan = wire(stories.plan(decisions=(stories.why_web(),)))
    assert list(problems(SCHEMA, plan)) == []
    (decision,) = plan["decisions"]
    assert decision["candidates"][0]["message"] == "least used zone, then the name"
    assert decision["wouldChange"][0]["message"] == "a Ready spare with cpu=large"


@pytest.mark.parametrize("field", ["apiVersion", "kind", "capability"])
def test_a_missing_field_is_detected(field):
    plan = {name: value for name, value in wire(stories.release()).items() if name != field}
    assert any(field in each for each in problems(SCHEMA, plan))


@pytest.mark.parametrize(("name", "value"), [("verb", "Delte"), ("message", 7), ("after", "a"), ("colour", "red")])
def test_a_wrong_field_is_detected(name, value):
    plan = wire(stories.release())
    plan["actions"][0][name] = value
    assert any(name in each for each in problems(SCHEMA, plan))
