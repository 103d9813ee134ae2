"""Answers to "why" on the wire, beyond what their capability says."""

import msgspec
from tests.builders.plans import blocked, decision

from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.dashboard.answers import to_wire
from nodeyard.plan.explain import compose
from nodeyard.plan.reasons import NeedsApproval


def test_an_answer_about_a_held_plan_offers_its_approval_first():
    message = NeedsApproval(id="0123456789ab", nodes=30, managed=100, limit="25")
    held = msgspec.structs.replace(blocked("web", message.reason), facts=message)
    answer = compose("spares", decision("Reconciled"), held=held)
    (first, *_) = to_wire(answer, SPARES, view=None).would_change
    assert (first.message, first.command) == ("Approve the held plan", "nodeyard approve 0123456789ab")


def test_an_answer_without_a_held_plan_offers_no_approval():
    answer = compose("spares", decision("Reconciled"))
    assert "approve" not in " ".join(each.command for each in to_wire(answer, SPARES, view=None).would_change)
