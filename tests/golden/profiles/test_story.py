"""Golden transcripts of the design's example: plan and explanation of its nodes. Renew with GOLDEN=write."""

import os
from pathlib import Path

import pytest

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.plan import plan
from nodeyard.capabilities.profiles.planning.services import node_ref
from nodeyard.plan.explain import Answer, render_answers
from nodeyard.plan.identity import assign_id
from nodeyard.plan.render import render_plan

from ...builders.profiles import (
    NOW,
    SEED_NODE_ANNOTATIONS,
    SEED_ROLE_ANNOTATIONS,
    node,
    role,
    seed_profiles,
    snapshot,
)

HERE = Path(__file__).parent
NODES = {
    "edpm-compute-0": {},
    "edpm-compute-1": SEED_NODE_ANNOTATIONS,
    "opted-out": {names.COMPUTE_PROFILE: "", names.TELEMETRY_PROFILE: "missing"},
}


def story(name):
    own = node(name, annotations=NODES[name])
    return snapshot(own, role(annotations=SEED_ROLE_ANNOTATIONS), **seed_profiles())


def compare(name, told):
    path = HERE / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(told)
    assert told == path.read_text()


@pytest.mark.parametrize("name", NODES)
def test_the_plan_of_a_node_reads_as_it_should(name):
    compare(f"plan-{name}", render_plan(assign_id(plan(story(name), NOW).plan)))


@pytest.mark.parametrize("name", NODES)
def test_why_a_node_is_as_it_is_reads_as_it_should(name):
    each = story(name)
    decisions = plan(each, NOW, [node_ref(each)]).plan.decisions
    compare(f"why-{name}", render_answers(Answer("profiles", decision) for decision in decisions))
