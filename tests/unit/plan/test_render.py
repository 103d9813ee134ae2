"""Texts of plans are short, complete and escaped, however large the plans are."""

import re

import pytest

from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.layout import pluralize
from nodeyard.plan.markdown import SIZE, escape, render_markdown
from nodeyard.plan.model import Disruption
from nodeyard.plan.render import render_plan, render_plans
from nodeyard.plan.style import Role, Style

from ...builders.interpreter_steps import steps
from ...builders.plans import (
    action,
    blocked,
    candidate,
    change,
    config_ref,
    decision,
    disruptive,
    node_ref,
    plan,
    render_decision,
)

FULL = Style(is_full=True)


def patch(name, *changes, **more):
    return action(name, object=node_ref(name), diff=changes or (change("spec.unschedulable", None, True),), **more)


def names(number):
    return [f"n{each:05}" for each in range(number)]


# folding


def test_equal_actions_are_one_line_with_their_number_and_first_names():
    text = render_plan(plan(*map(patch, names(7))))
    assert "  Patch 7 Nodes: n00000, n00001, n00002, n00003, n00004 and 2 more\n" in text
    assert text.count("spec.unschedulable") == 1


@pytest.mark.parametrize(
    "other",
    [
        patch("b", reason="Other"),
        patch("b", disruption=Disruption.EVICTS),
        patch("b", change("spec.taints", None, True)),
        patch("b", change("spec.unschedulable", True, None)),
        action("b", object=config_ref("b"), diff=(change("spec.unschedulable", None, True),)),
    ],
)
def test_actions_with_different_changes_are_not_folded(other):
    assert "Nodes:" not in render_plan(plan(patch("a"), other))


def test_different_values_of_equal_actions_are_counted():
    text = render_plan(plan(*(patch(name, change("metadata.labels[tier]", None, name)) for name in names(4))))
    assert '+ metadata.labels[tier] "n00000" and 3 other values' in text


def test_different_messages_of_equal_actions_are_counted():
    text = render_plan(plan(*(patch(name, facts={"node": name}) for name in names(5))))
    assert "because of node n00001" in text
    assert "because of node n00002" not in text
    assert "and 3 more messages of this reason" in text


def test_a_group_waits_for_groups_and_not_for_itself():
    first = [patch(f"a{name}") for name in names(2)]
    second = [patch(f"b{name}", reason="Second", after=(f"a{name}",)) for name in names(2)]
    chained = patch("c", reason="Second", after=("bn00001", "gone"))
    text = render_plan(plan(*first, *second, chained))
    assert text.count("waits for") == 2
    assert "waits for Patch 2 Nodes: an00000 and 1 more (Tested)" in text
    assert "waits for gone" in text


def test_disrupted_nodes_of_a_group_are_counted_once():
    pods = [
        action(f"p{each}", object=config_ref(f"p{each}"), disruption=Disruption.EVICTS, disrupts=("n1",))
        for each in range(9)
    ]
    assert "! evicts (1 node)" in render_plan(plan(*pods), Style(width=160))


def test_the_full_text_neither_folds_nor_truncates():
    long = "x" * 500
    acts = [patch(name, change("metadata.labels[tier]", None, long)) for name in names(30)]
    text = render_plans([plan(*acts, blocked=tuple(map(blocked, names(40)))), plan(key="idle")], FULL)
    assert text.count(f'+ metadata.labels[tier] "{long}"') == 30
    assert "n00039" in text
    assert "more" not in text
    assert "spares idle: nothing to do" in text


# empty plans


def test_idle_plans_are_counted_and_not_printed():
    idle = [plan(key=name) for name in names(9000)]
    assert render_plans(idle) == "nothing to do in 9000 plans of spares\n"
    text = render_plans([*idle, plan(patch("a"), key="web")])
    assert len(text.splitlines()) < 10
    assert text.endswith("nothing to do in 9000 more plans\n")


def test_plans_that_do_the_same_are_one():
    text = render_plans([plan(patch(name), key=name) for name in names(5000)])
    assert text.startswith("spares n00000, n00001, n00002, n00003, n00004 and 4995 more (5000 plans)\n")
    assert "5000 actions, nothing blocked" in text
    assert len(text.splitlines()) < 10


def test_refusals_with_many_different_texts_are_one():
    refused = tuple(blocked(name, node=name) for name in names(1000))
    text = render_plan(plan(blocked=refused))
    assert "Blocked 1000 Nodes: n00000" in text
    assert "and 998 more messages of this reason" in text


def test_every_held_plan_names_its_approval_up_to_a_bound():
    def held(number):
        acts = [disruptive(f"{number}-{name}") for name in names(3)]
        return brake(plan(*acts, key=f"k{number:02}"), Limit(nodes=0, percent=0), managed=10).now

    text = render_plans([held(number) for number in range(25)])
    assert len(set(re.findall(r"nodeyard approve ([0-9a-f]{12})", text))) == 20
    assert "and 5 more held plans: `nodeyard approve` lists them" in text


def test_rendering_is_linear():
    def fleet(number):
        first = [patch(f"a{name}", facts={"node": name}) for name in names(number)]
        second = [patch(f"b{name}", reason="Second", after=(f"a{name}",)) for name in names(number)]
        refused = tuple(blocked(name, node=name) for name in names(number))
        return [plan(*first, *second, blocked=refused), *(plan(patch(name), key=name) for name in names(number))]

    for style in (Style(), FULL):
        few, many = fleet(50), fleet(400)
        assert steps(lambda: render_plans(many, style)) < 8.8 * steps(lambda: render_plans(few, style))  # noqa: B023
    assert steps(lambda: render_markdown(many)) < 8.8 * steps(lambda: render_markdown(few))


# width, colours, and texts of others


@pytest.mark.parametrize("width", [80, 100, 160])
def test_lines_fit_the_width(width):
    acts = [patch(name, change("metadata.annotations[record]", "x" * 300, "y" * 300)) for name in names(9)]
    refused = [blocked(name, why="a reason that is long, " * 9) for name in names(9)]
    text = render_plan(plan(*acts, blocked=tuple(refused)), Style(width=width))
    assert width - 25 < max(map(len, text.splitlines())) <= width


def test_colours_change_nothing_but_colours():
    plans = [plan(patch("a", disruption=Disruption.EVICTS), blocked=(blocked("b"),)), plan(patch("c"), key="other")]
    painted = render_plans(plans, Style(is_coloured=True))
    assert f"\x1b[{Role.DISRUPTIVE.value}mPatch Node a  ! evicts\x1b[0m" in painted
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == render_plans(plans)
    assert "\x1b" not in render_plans(plans)


@pytest.mark.parametrize("evil", ["\x1b]0;owned\x07", "\x9b2J", "\u202egpj.exe", "\r"])
def test_texts_of_others_do_not_steer_the_terminal(evil):
    refused = blocked(f"n{evil}1", why=f"see {evil} there")
    acted = patch("a", change(f"metadata.labels[{evil}]", None, f"{evil}"))
    texts = [
        render_plan(plan(acted, blocked=(refused,))),
        render_markdown([plan(acted, blocked=(refused,))]),
        render_decision(decision("Refused", candidate(f"{evil}", "NotReady"), why=evil)),
    ]
    assert not any(character in text for text in texts for character in evil if not character.isprintable())


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Node", "Nodes"), ("NetworkPolicy", "NetworkPolicies"), ("LatticeNodeClass", "LatticeNodeClasses")],
)
def test_kinds_have_plurals(kind, plural):
    assert pluralize(kind) == plural


# Markdown


def test_a_comment_fits_however_large_the_plans_are():
    acts = [patch(name, change(f"metadata.labels[{name}]", None, "x" * 50)) for name in names(3000)]
    text = render_markdown([plan(*acts), plan(patch("a"), key="other")])
    assert len(text) < SIZE + 500
    assert "the changed fields and 2 plans are left out" in text


def test_the_changed_fields_are_left_out_before_plans():
    acts = [patch(name, change(f"metadata.labels[{name}]", None, "x" * 80)) for name in names(500)]
    text = render_markdown([plan(*acts)])
    assert "Too long for a comment: the changed fields are left out" in text
    assert "n00499" in text


def test_markdown_of_idle_plans_says_so():
    assert "**Nothing to do.**" in render_markdown([plan()])


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a | b", "a \\| b"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("[link](https://example.org)", "\\[link\\](https://example.org)"),
        ("`nodeyard approve a_b`", "`nodeyard approve a_b`"),
        ("`a | b`", "\\`a \\| b\\`"),
        ("two\nlines", "two lines"),
        ("@everybody", "@\N{ZERO WIDTH SPACE}everybody"),
    ],
)
def test_texts_of_others_add_no_markup(text, escaped):
    assert escape(text) == escaped


def test_a_value_cannot_end_the_diff():
    text = render_markdown([plan(patch("a", change("metadata.labels[a]", None, "```\n# evil")))])
    assert "````diff" in text
