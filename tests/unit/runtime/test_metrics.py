"""What the loop measures: sums over all keys, kept as they change."""

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.plan.model import Action, Blocked, ObjectRef, Plan, Verb
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.metrics import LoopMetrics

REF = ObjectRef(api_version="v1", kind="Node", name="n")


def plan(key, actions=0, blocked=()):
    made = tuple(Action(id=str(number), verb=Verb.PATCH, object=REF, reason="R") for number in range(actions))
    return Plan(
        capability="c", key=key, actions=made, blocked=tuple(Blocked(object=REF, reason=reason) for reason in blocked)
    )


class Measured:
    def __init__(self):
        self.metrics = Metrics()
        self.loop = LoopMetrics(self.metrics).of("c")

    def __getitem__(self, name):
        found = {}
        for family in self.metrics.registry.collect():
            for sample in family.samples:
                if sample.name == name:
                    labels = {key: value for key, value in sample.labels.items() if key != "capability"}
                    found[tuple(labels.values())] = sample.value
        return found


def test_actions_and_refusals_are_those_of_the_last_plan_of_each_key():
    measured = Measured()
    measured.loop.planned(plan("a", 3, ["X", "X", "Y"]), is_held=True)
    measured.loop.planned(plan("b", 2), is_held=False)
    assert measured["nodeyard_plan_actions"] == {(): 5}
    assert measured["nodeyard_plan_blocked"] == {("X",): 2, ("Y",): 1}
    assert measured["nodeyard_plans_held"] == {(): 1}
    measured.loop.planned(plan("a", 1, ["Y"]), is_held=False)
    assert measured["nodeyard_plan_actions"] == {(): 3}
    assert measured["nodeyard_plan_blocked"] == {("X",): 0, ("Y",): 1}
    assert measured["nodeyard_plans_held"] == {(): 0}


def test_a_key_that_is_gone_counts_no_more_and_one_never_seen_neither():
    measured = Measured()
    measured.loop.planned(plan("a", 3, ["X"]), is_held=True)
    measured.loop.forget("a")
    measured.loop.forget("never")
    assert measured["nodeyard_plan_actions"] == {(): 0}
    assert measured["nodeyard_plans_held"] == {(): 0}


def test_actions_are_counted_by_what_became_of_them():
    measured = Measured()
    results = [
        ActionResult(action=action, result=result)
        for action, result in zip(plan("a", 3).actions, (Result.DONE, Result.DONE, Result.DENIED), strict=True)
    ]
    measured.loop.applied("a", Outcome(results=tuple(results)))
    assert measured["nodeyard_actions_total"] == {("Patch", "Done"): 2, ("Patch", "Denied"): 1}


def test_why_nothing_is_written_is_one_reason_at_a_time():
    measured = Measured()
    measured.loop.observing("--observe")
    measured.loop.observing("original")
    assert measured["nodeyard_observing"] == {("--observe",): 0, ("original",): 1}
    measured.loop.observing("")
    assert measured["nodeyard_observing"] == {("--observe",): 0, ("original",): 0}
