"""`why` joins a decision with conditions, held plan and operator, and calls no broken object healthy."""

import msgspec
import pytest
from tests.builders.plans import blocked, decision

from nodeyard.kube.objects import Condition
from nodeyard.plan.explain import compose, is_adverse, render_answers
from nodeyard.plan.reasons import NeedsApproval

FINE = frozenset({"Reconciled"})


def condition(type, status, reason="Broken", message="it is broken", generation=0):
    return Condition(type=type, status=status, reason=reason, message=message, observed_generation=generation)


def answer(rule="Reconciled", **known):
    return compose("spares", decision(rule), fine=FINE, **known)


def test_without_a_fault_the_rule_is_the_answer():
    told = answer(conditions=[condition("Ready", "True", "Reconciled")])
    assert told.reasons == ("Reconciled",)
    assert "Reconciled: it is reconciled" in render_answers([told])


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_failed_condition_replaces_a_rule_that_says_fine(status):
    told = answer(conditions=[condition("Ready", status)])
    assert told.reasons == ("Broken",)
    text = render_answers([told])
    assert f"Broken: it is broken; Ready is {status}" in text
    assert "Reconciled" not in text


def test_an_unrelated_rule_is_shown_with_the_condition():
    assert answer("ChosenByNode", conditions=[condition("Ready", "False")]).reasons == ("Broken", "ChosenByNode")


def test_a_condition_with_the_reason_of_the_rule_is_not_repeated():
    assert answer("Broken", conditions=[condition("Ready", "False")]).reasons == ("Broken",)


def test_a_held_plan_comes_first_and_once():
    message = NeedsApproval(id="0123456789ab", nodes=30, managed=100, limit="25")
    held = msgspec.structs.replace(blocked("web", message.reason), facts=message)
    ready = condition("Ready", "False", "NeedsApproval", message.text())
    told = answer(held=held, conditions=[condition("Held", "True", "NeedsApproval"), ready])
    assert told.reasons == ("NeedsApproval",)
    assert "nodeyard approve 0123456789ab" in render_answers([told])


def test_without_a_running_operator_nothing_is_fine():
    told = answer(is_served=False)
    assert told.reasons == ("NotServed",)
    assert "no operator runs spares" in render_answers([told])


def test_a_condition_of_an_older_generation_is_marked():
    told = answer(conditions=[condition("Ready", "False", generation=2)], generation=3)
    assert "observed at generation 2; the spec is at 3" in render_answers([told])


def test_an_empty_message_is_no_empty_answer():
    assert "no message; Ready is False" in render_answers(
        [answer(conditions=[condition("Ready", "False", message="")])]
    )


def test_a_foreign_sentence_is_continued_without_its_full_stop():
    text = render_answers([answer(conditions=[condition("Ready", "Unknown", message="Kubelet never posted.")])])
    assert "Kubelet never posted; Ready is Unknown" in text


@pytest.mark.parametrize(
    ("type", "status", "is_bad"),
    [
        ("Ready", "False", True),
        ("Ready", "True", False),
        ("Held", "True", True),
        ("Held", "False", False),
        ("MemoryPressure", "True", True),
        ("MemoryPressure", "False", False),
        ("Progressing", "False", False),
        ("Surplus", "True", True),
        ("Surplus", "False", False),
        ("ScalingUp", "False", False),
        ("RollingOut", "True", False),
    ],
)
def test_conditions_are_bad_by_their_polarity(type, status, is_bad):
    assert is_adverse(condition(type, status)) is is_bad
