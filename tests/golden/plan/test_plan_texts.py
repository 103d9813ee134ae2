"""Texts of plans and decisions. `GOLDEN=write` writes them anew; then read them."""

import os
from pathlib import Path

import msgspec
import pytest
from tests.builders.plans import render_decision

from nodeyard.plan.explain import Answer, render_answers
from nodeyard.plan.markdown import render_markdown
from nodeyard.plan.model import to_wire
from nodeyard.plan.render import render_plan, render_plans
from nodeyard.plan.style import Style

from . import stories

HERE = Path(__file__).parent
FULL = Style(is_full=True)
PLANS = ["nothing", "claims", "release", "braked", "refusals"]


def compare(name, text, suffix="txt"):
    path = HERE / f"{name}.{suffix}"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_reads_as_it_should(name):
    compare(name, render_plan(getattr(stories, name)()))


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_reads_alike_each_time_and_fits_the_terminal(name):
    text = render_plan(getattr(stories, name)())
    assert text == render_plan(getattr(stories, name)())
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", ["release", "refusals"])
def test_the_public_form_of_a_plan_does_not_change_by_accident(name):
    wire = msgspec.json.encode(to_wire(getattr(stories, name)()))
    compare(name, msgspec.json.format(wire, indent=2).decode() + "\n", "json")


def test_plans_are_in_the_order_of_capability_and_key():
    empty = [stories.plan(capability=name, key=key) for name, key in [("b", "1"), ("a", "2"), ("a", "1")]]
    assert render_plans(empty, FULL) == "a 1: nothing to do\n\na 2: nothing to do\n\nb 1: nothing to do\n"


def test_plans_of_a_large_fleet_fit_a_screen():
    text = render_plans(stories.fleet())
    compare("fleet", text)
    assert len(text.splitlines()) <= 70


@pytest.mark.parametrize("name", ["release", "claims"])
def test_the_full_text_names_each_action_with_whole_values(name):
    compare(f"{name}-full", render_plan(getattr(stories, name)(), FULL))


def test_a_pull_request_shows_the_plans_of_a_large_fleet():
    compare("fleet", render_markdown(stories.fleet(), "Operator: version 0.1.0 runs spares."), "md")


def test_colours_mark_what_is_added_removed_disruptive_and_held():
    compare("release-coloured", render_plan(stories.release(), Style(is_coloured=True)))


def test_a_decision_reads_as_it_should():
    compare("why", render_decision(stories.why_web(), "spares"))


def test_a_short_answer_counts_what_it_does_not_name():
    text = render_decision(stories.why_web(), candidates=1)
    assert "and 39 more: 22 SelectorMismatch, 17 NotReady" in text
    assert max(map(len, text.splitlines())) <= 100


def test_every_capability_that_has_an_answer_is_named():
    text = render_answers([Answer("spares", stories.why_web()), Answer("pools", stories.why_web())])
    assert text.index("NodeTemplate web (pools)") < text.index("NodeTemplate web (spares)")
