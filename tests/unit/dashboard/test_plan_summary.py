"""Plans as the page shows them: equal actions folded, what hurts first, what a change causes apart."""

from nodeyard.dashboard.plan_summary import fold, identity, members_of, summarize, to_wire
from nodeyard.dashboard.wire import GROUPED, SAMPLES
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.message import Message
from nodeyard.plan.model import Action, Blocked, Disruption, FieldChange, ObjectRef, Plan, Verb


class Told(Message, frozen=True):
    reason = "Told"
    word: str = ""

    def text(self) -> str:
        return f"Tells {self.word}"


def ref(name, kind="Node"):
    return ObjectRef(api_version="v1", kind=kind, name=name)


def action(name, *, reason="Claimed", disruption=Disruption.NONE, paths=("spec.a",), after=(), kind="Node"):
    return Action(
        id=f"{kind}/{name}",
        verb=Verb.PATCH,
        object=ref(name, kind),
        reason=reason,
        facts=Told(word=name),
        diff=tuple(FieldChange(path=path, to=name) for path in paths),
        disruption=disruption,
        after=after,
    )


def plan(*actions, blocked=()):
    return Plan(capability="labels", key="k", actions=actions, blocked=blocked)


def test_equal_actions_are_one_group_whatever_they_write():
    (group,) = fold([action(f"n{number}") for number in range(100)])
    assert (group.count, group.verb, group.kind, group.nodes) == (100, "Patch", "Node", 0)
    assert [sample.name for sample in group.samples] == [f"n{number}" for number in range(SAMPLES)]


def test_another_field_or_reason_is_another_group():
    assert len(fold([action("a"), action("b", paths=("spec.b",)), action("c", reason="Updated")])) == 3


def test_disruptive_actions_come_first():
    groups = fold([action("a"), action("b", disruption=Disruption.EVICTS), action("c")])
    assert [(group.disruption, group.nodes) for group in groups] == [("evicts", 1), ("none", 0)]


def test_groups_wait_for_groups():
    first, second = fold([action("t", kind="Template"), action("n1", after=("Template/t",))])
    assert second.after == (first.id,)
    assert first.after == ()


def test_a_group_keeps_its_id_while_its_actions_are_equal():
    (before,) = fold([action("n1")])
    (after,) = fold([action("n2"), action("n3")])
    assert before.id == after.id
    assert [each.object.name for each in members_of([action("n2")])[after.id]] == ["n2"]


def test_consequences_of_a_change_are_listed_separately():
    known, new = action("n1"), action("n2")
    groups = fold([known, new], {identity(new)})
    assert [(group.is_new, group.samples[0].name) for group in groups] == [(False, "n1"), (True, "n2")]


def test_a_held_plan_says_how_much_it_disrupts():
    actions = [action(f"n{number}", disruption=Disruption.RELEASES) for number in range(30)]
    braked = brake(plan(*actions, action("x")), Limit(nodes=5, percent=0), 100)
    summary = summarize(braked)
    assert summary.held is not None
    assert (summary.held.nodes, summary.held.actions, summary.held.id) == (30, 30, braked.held.id)
    assert summary.held.message == "30 of 100 managed nodes would be disrupted, more than the limit of 5 nodes."
    assert [group.count for group in summary.held.groups] == [30]
    assert [group.count for group in summary.groups] == [1]
    assert summary.blocked == ()


def test_equal_refusals_are_one_and_many_are_counted():
    equal = [Blocked(object=ref(f"n{number}"), reason="Told", facts=Told(word="x")) for number in range(9)]
    others = [
        Blocked(object=ref(f"m{number}"), reason="Told", facts=Told(word=str(number))) for number in range(GROUPED)
    ]
    summary = summarize(brake(plan(blocked=(*equal, *others)), Limit(), 0))
    assert summary.blocked[0].count == 9
    assert (len(summary.blocked), summary.blocked_total) == (GROUPED, GROUPED + 1)


def test_an_action_has_its_public_form_and_its_sentence():
    wire = to_wire(action("n1"))
    assert wire["message"] == "Tells n1"
    assert list(wire["diff"]) == [{"path": "spec.a", "to": "n1"}]
