"""`make chaos`: its invariants find what they are for, and a seed is always the same schedule."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from chaos import schedule
from chaos.recording import Observed
from chaos.spares import NODES, TEMPLATES, Spares

from nodeyard.capabilities.spares import names

KEY = "chaos.example/a"


def template(revision, nodes, name="web"):
    return Observed(revision, TEMPLATES, name, {"metadata": {"name": name}, "spec": {"nodes": nodes}})


def node(revision, owner="", name="n1", labels=(), annotations=(), taints=()):
    owned = {names.TEMPLATE_LABEL: owner} if owner else {}
    metadata = {
        "name": name,
        "labels": {**owned, **dict.fromkeys(labels, "x")},
        "annotations": dict.fromkeys(annotations, "x"),
    }
    spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]}
    return Observed(revision, NODES, name, {"metadata": metadata, "spec": spec})


def gone(revision, name="n1"):
    return Observed(revision, NODES, name, None)


def violations(*observed):
    return list(Spares(None, Random(0)).violations(observed))


def test_a_sound_history_violates_nothing():
    assert not violations(
        template(1, 1),
        node(2, labels=[KEY]),
        node(3, "web", labels=[KEY]),
        node(4, "", labels=[KEY]),
        node(5, "web", labels=[KEY]),
        gone(6),
        node(7, "", "n2"),
        node(8, "web", "n2"),
        template(9, 0),
        node(10, "web", "n2"),
    )


@pytest.mark.parametrize(
    ("observed", "violation"),
    [
        ([template(1, 1), template(2, 1, "db"), node(3, "web"), node(4, "db")], "at 4: node n1 went from web to db"),
        ([template(1, 1), node(2, "web"), node(3, "web", "n2")], "at 3: web asked for 1 nodes and got 2"),
        ([node(2, labels=[KEY]), node(3)], f"at 3: node n1 lost label {KEY}"),
        ([node(2, annotations=[KEY]), node(3)], f"at 3: node n1 lost annotation {KEY}"),
        ([node(2, taints=[KEY]), node(3)], f"at 3: node n1 lost taint {KEY}"),
    ],
)
def test_a_violated_invariant_is_found_at_its_revision(observed, violation):
    assert violations(*observed) == [violation]


def test_a_seed_is_one_schedule():
    kinds = ("kill", "pause")

    first, second = (schedule.draw(Random(7), 60, kinds) for _ in range(2))

    assert first == second != schedule.draw(Random(8), 60, kinds)
    assert all(before.at + before.seconds < after.at for before, after in pairwise(first))
    assert {step.name for step in first} == {"network", *kinds}
