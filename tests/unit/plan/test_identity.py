"""The id of a plan is a hash of its actions."""

import subprocess
import sys
from datetime import UTC, datetime

import msgspec
import pytest

from nodeyard.plan.identity import assign_id, compute_id
from nodeyard.plan.model import Decision, Disruption, Verb

from ...builders.plans import action, blocked, change, message, node_ref, plan

BASE = action("a", diff=(change("metadata.labels[x]", "1", "2"),))


def other(**changes):
    return plan(msgspec.structs.replace(BASE, **changes))


def test_equal_plans_have_equal_ids():
    assert compute_id(plan(BASE)) == compute_id(plan(BASE)) == assign_id(plan(BASE)).id


def test_an_id_is_short_and_plain():
    assert len(compute_id(plan(BASE))) == 12
    assert compute_id(plan(BASE)).isalnum()


@pytest.mark.parametrize(
    "changes",
    [
        {"verb": Verb.DELETE},
        {"object": node_ref("b")},
        {"object": node_ref("a", uid="u")},
        {"diff": (change("metadata.labels[x]", "1", "3"),)},
        {"disruption": Disruption.RELEASES},
        {"disrupts": ("n1",)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_actions_count_for_the_id(changes):
    assert compute_id(other(**changes)) != compute_id(plan(BASE))


@pytest.mark.parametrize("changes", [{"facts": {"zone": "z1"}}, {"reason": "Another"}, {"id": "other"}])
def test_descriptive_fields_do_not_count_for_the_id(changes):
    assert compute_id(other(**changes)) == compute_id(plan(BASE))


def test_refusals_decisions_and_wake_at_do_not_count_for_the_id():
    told = plan(
        BASE,
        blocked=(blocked("b"),),
        decisions=(Decision(object=node_ref("a"), rule="Kept", facts=message("Kept")),),
        wake_at=datetime(2026, 1, 1, tzinfo=UTC),
        id="given",
    )
    assert compute_id(told) == compute_id(plan(BASE))


def test_the_order_in_which_actions_are_listed_does_not_count():
    one, two = action("one"), action("two", after=("one",))
    assert compute_id(plan(one, two)) == compute_id(plan(two, one))


def test_the_order_of_counted_actions_counts():
    one, two = action("one"), action("two")
    assert compute_id(plan(one, two)) != compute_id(plan(one, msgspec.structs.replace(two, after=("one",))))


def test_order_after_actions_outside_the_plan_does_not_count():
    assert compute_id(other(after=("done before",))) == compute_id(plan(BASE))


def test_a_written_timestamp_does_not_change_the_plan_id():
    first, second = (
        other(diff=(change("metadata.annotations[since]", None, f'{{"since":"2026-01-01T00:00:{second}Z"}}'),))
        for second in ("07", "08")
    )
    assert compute_id(first) == compute_id(second)


def test_the_same_key_of_another_capability_is_another_plan():
    assert compute_id(plan(BASE, capability="pools")) != compute_id(plan(BASE))
    assert compute_id(plan(BASE, key="k")) != compute_id(plan(BASE))


def test_an_id_is_the_same_in_every_process():
    script = (
        "from nodeyard.plan.model import *; from nodeyard.plan.message import Message;"
        "from nodeyard.plan.identity import compute_id;"
        "ref = ObjectRef(api_version='v1', kind='Node', name='a');"
        "diff = (FieldChange(path='metadata.labels[x]', from_='1', to='2'),);"
        "a = Action(id='a', verb=Verb.PATCH, object=ref, reason='Tested', facts=Message(), diff=diff);"
        "print(compute_id(Plan(capability='spares', key='nodetemplates', actions=(a,))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == compute_id(plan(BASE))
