"""The recorder: what it counts and keeps, its steps, and the bound of its memory."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.client.decoder import PartialMetadata
from nodeyard.dashboard import recorder as recording
from nodeyard.dashboard.recorder import Event, Recorder, Series, write_of
from nodeyard.dashboard.wire import encode
from nodeyard.kube.names import APPROVALS
from nodeyard.plan.brake import Braked
from nodeyard.plan.message import Message
from nodeyard.plan.model import Action, FieldChange, ObjectRef, Plan, Verb
from nodeyard.runtime.reconcile.passes import PassEvent
from nodeyard.runtime.reconcile.result import Ending
from nodeyard.runtime.surface import Blocker, Contact, Leaf, Places, Rollout

START = datetime(2030, 1, 1, tzinfo=UTC)
T = START.timestamp()


class Said(Message, frozen=True):
    def text(self):
        return "It was said"


class Clock:
    def __init__(self):
        self.moment = START

    def now(self):
        return self.moment

    def later(self, seconds):
        self.moment += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(clock):
    return Recorder(clock, ("spares", "pools"))


def action(name="n1", reason="Claimed", lines=1):
    diff = tuple(FieldChange(path=f"metadata.labels[l{number}]", to="x" * 50) for number in range(lines))
    ref = ObjectRef(api_version="v1", kind="Node", name=name)
    return Action(id=name, verb=Verb.PATCH, object=ref, reason=reason, facts=Said(), diff=diff)


def applied(*actions, result=Result.DONE, message="", capability="spares", key="all"):
    braked = Braked(Plan(capability=capability, key=key, actions=actions), None)
    results = tuple(ActionResult(action=each, result=result, message=message) for each in actions)
    return PassEvent(capability, key, braked, Outcome(results=results))


def planned(held=""):
    plan = Plan(capability="spares", key="all")
    return PassEvent("spares", "all", Braked(plan, msgspec.structs.replace(plan, id=held) if held else None))


def ended(ending=Ending.SETTLED):
    return PassEvent("spares", "all", ending=ending)


def lane(recorder, start=T - 3600, end=T + 86400, name="spares"):
    return json.loads(encode(recorder.read(start, end, None)["lanes"][name]))


def writes(recorder, start=0, end=T + 1e6, offset=0):
    found = recorder.writes("spares", start, end, offset)
    return found["total"], [json.loads(bytes(each)) for each in found["writes"]]


def test_a_pass_and_its_writes_are_counted_by_reason(recorder):
    recorder.record(applied(action("n1"), action("n2"), action("n3", "Released")))
    recorder.record(ended())
    (point,) = lane(recorder)
    assert point == {"t": T, "passes": 1, "writes": {"Claimed": 2, "Released": 1}}


def test_a_write_is_read_with_its_diff_and_reason(recorder, clock):
    recorder.record(applied(action("n1")))
    clock.later(5)
    recorder.record(applied(action("n2"), result=Result.DENIED, message="the policy says no"))
    total, (last, first) = writes(recorder)
    assert total == 2
    assert (last["outcome"], last["message"]) == ("Denied", "the policy says no")
    assert (first["object"]["name"], first["reason"], first["verb"], first["t"]) == ("n1", "Claimed", "Patch", T)
    assert first["diff"] == [{"path": "metadata.labels[l0]", "to": "x" * 50}]
    assert lane(recorder)[0]["errors"] == 1


def test_a_held_action_is_not_recorded_as_a_write(recorder):
    recorder.record(applied(action(), result=Result.HELD))
    recorder.record(applied(action(), result=Result.SKIPPED))
    assert writes(recorder)[0] == 0


def test_a_pass_of_another_replica_is_no_pass(recorder):
    for ending in (Ending.NOT_LEADING, Ending.NOT_SYNCED, Ending.SETTLED, Ending.ERROR):
        recorder.record(ended(ending))
    (point,) = lane(recorder)
    assert (point["passes"], point["errors"]) == (2, 1)


def test_a_brake_is_counted_once_for_as_long_as_the_plan_is_held(recorder):
    for held in ("a1", "a1", "b2", "", "b2"):
        recorder.record(planned(held))
    (point,) = lane(recorder)
    assert point["brakes"] == 3
    assert [mark["type"] for mark in point["marks"]] == ["Brake"] * 3
    assert "a1 of all is held" in point["marks"][0]["message"]


def marks_of(point):
    return [(mark["type"], mark["message"]) for mark in point["marks"]]


class Root:
    def __init__(self, **annotations):
        self.metadata = PartialMetadata(annotations=annotations)


def approved(*ids):
    return Root(**{APPROVALS: json.dumps([{"id": id, "by": "ann", "reason": "planned"} for id in ids])})


def test_an_approval_is_recorded_with_who_and_why(recorder):
    recorder.observe_approvals("spares", None, approved("a1"))
    recorder.observe_approvals("spares", approved("a1"), approved("a1", "b2"))
    recorder.observe_approvals("spares", approved("a1", "b2"), approved("b2"))
    (point,) = lane(recorder)
    assert point["approvals"] == 1
    assert marks_of(point) == [("Approval", "ann approved b2: planned")]


def test_an_annotation_that_is_no_list_of_approvals_is_ignored(recorder):
    recorder.observe_approvals("spares", Root(), Root(**{APPROVALS: "{nonsense"}))
    assert lane(recorder) == []


def test_leader_changes_and_restarts_are_distinguished(recorder):
    for holder in ("pod-a_1", "pod-a_1", "pod-a_2", "pod-b_3", "", "pod-b_4"):
        recorder.observe_holder("spares", holder)
    marks = marks_of(lane(recorder)[0])
    assert marks == [
        ("Restart", "pod-a_2 restarted"),
        ("Leader", "pod-b_3 leads instead of pod-a_2"),
        ("Leader", "pod-b_3 released the Lease or stopped renewing it"),
        ("Leader", "pod-b_4 leads"),
    ]


def places(state, message=""):
    return Places(leaves=(Leaf(name="east", capability="pools", contact=Contact(state=state, message=message)),))


def test_a_change_of_contact_with_a_leaf_is_a_mark(recorder):
    recorder.observe_places("pools", places("LeafReachable"))
    recorder.observe_places("pools", places("LeafReachable"))
    recorder.observe_places("pools", places("LeafUnreachable", "no route"))
    recorder.observe_places("pools", Places())
    recorder.observe_places("pools", places("LeafReachable"))
    assert marks_of(lane(recorder, name="pools")[0]) == [("Contact", "east: no route")]


def test_a_mark_has_its_exact_time(recorder, clock):
    clock.later(7)
    recorder.mark("pools", "Leader", "somebody leads")
    (point,) = lane(recorder, name="pools")
    assert point["marks"][0]["t"] - point["t"] == 7


def test_an_event_of_an_operator_elsewhere_is_a_write_without_a_diff(recorder):
    about = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    event = Event(regarding=about, event_time="2029-12-31T23:59:00Z", type="Warning", reason="Refused", note="no")
    recorder.record_event(write_of(event, "spares", T))
    again = msgspec.structs.replace(event, series=Series(count=2, last_observed_time="2029-12-31T23:59:30Z"))
    recorder.record_event(write_of(again, "spares", T))
    total, (last, first) = writes(recorder)
    assert (total, first["t"], last["t"], last["outcome"]) == (2, T - 60, T - 30, "Warning")
    assert "diff" not in last
    assert lane(recorder)[0]["errors"] == 2


def test_a_long_span_has_larger_steps_and_the_same_sums(recorder, clock):
    for _ in range(24 * 60):
        recorder.record(ended())
        recorder.record(applied(action()))
        clock.later(60)
    found = recorder.read(T, T + 86400, None)
    points = found["lanes"]["spares"]
    assert len(points) <= recording.POINTS
    assert found["step"] == 300
    assert sum(point.passes for point in points) == 24 * 60
    assert sum(point.writes["Claimed"] for point in points) == 24 * 60
    short = recorder.read(T + 3600, T + 7200, None)
    assert short["step"] == 60
    assert len(short["lanes"]["spares"]) == 61


def test_entries_older_than_a_day_are_dropped(recorder, clock):
    recorder.record(applied(action("old")))
    recorder.record(ended())
    clock.later(recording.SECONDS + 120)
    recorder.record(applied(action("new")))
    (point,) = lane(recorder, T - 1, T + 2 * 86400)
    assert point["t"] >= T + 86400
    assert [each["object"]["name"] for each in writes(recorder)[1]] == ["new"]


def test_writes_are_read_in_pages_of_a_span(recorder, clock):
    for number in range(120):
        recorder.record(applied(action(f"n{number}")))
        clock.later(1)
    total, page = writes(recorder, T + 10, T + 100)
    assert (total, len(page), page[0]["object"]["name"]) == (91, recording.PAGE, "n100")
    total, rest = writes(recorder, T + 10, T + 100, 50)
    assert (total, len(rest), rest[-1]["object"]["name"]) == (91, 41, "n10")


def test_a_viewer_reads_only_entries_that_its_rights_allow(recorder):
    assert list(recorder.read(T, T, frozenset({"pools"}))["lanes"]) == ["pools"]


def test_the_memory_is_bounded_whatever_happens(recorder, clock, monkeypatch):
    """A day of many reasons, marks and long diffs: every part stays within its bound."""
    monkeypatch.setattr(recording, "LANE_BYTES", 200_000)
    for minute in range(3 * 24 * 60 // 10):
        for number in range(10):
            recorder.record(applied(action(f"n{number}", f"Reason{(minute * 10 + number) % 997}", lines=number)))
            recorder.mark("spares", "Contact", "x" * 1000)
        if minute % 100 == 0:
            for number in range(100):
                recorder.record(applied(action(f"m{number}", f"Reason{number}", lines=3000)))
        recorder.drain(10_000)
        recorder.entries()
        clock.later(600)
    found = recorder.lanes["spares"]
    assert len(found.buckets) <= 24 * 60 + 1
    assert all(len(bucket.writes) <= recording.REASONS + 1 for bucket in found.buckets.values())
    assert all(len(bucket.marks) <= recording.MARKS for bucket in found.buckets.values())
    assert found.bytes == sum(len(each.encoded) for each in found.writes) <= 200_000
    assert max(len(each.encoded) for each in found.writes) <= recording.WRITE_BYTES
    assert len(encode(recorder.read(0, T + 1e9, None))) < 2_000_000


def test_passes_that_nobody_drains_are_bounded(recorder):
    for _ in range(recording.PENDING + 10):
        recorder.record(ended())
    (point,) = lane(recorder)
    assert point["passes"] == recording.PENDING


def test_many_writes_are_recorded_in_small_steps(recorder):
    recorder.record(applied(*(action(f"n{number}") for number in range(1000))))
    assert recorder.drain(100)
    assert len(recorder.lanes["spares"].writes) < 100
    assert writes(recorder)[0] == 1000


def test_only_changed_lanes_are_entries_of_the_feed(recorder):
    recorder.record(ended())
    recorder.drain(10)
    (entry,) = recorder.entries()["spares"]
    assert (entry.capability, entry.passes) == ("spares", 1)
    assert recorder.entries() == {}


REFUSED = "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget keep needs 1"


def evicted(name, result=Result.FAILED, message=REFUSED):
    ref = ObjectRef(api_version="v1", kind="Pod", namespace="default", name=name)
    each = Action(id=name, verb=Verb.EVICT, object=ref, reason="Evicted", facts=Said())
    return applied(each, result=result, message=message)


def drain(*pods):
    blockers = (
        Blocker(
            object=ObjectRef(api_version="v1", kind="Pod", namespace="default", name=name),
            reason="WaitingForPods",
            message="Runs on n1",
            ways_out=("wait",),
        )
        for name in pods
    )
    of = ObjectRef(api_version="v1", kind="NodeTemplate", name="web")
    row = Rollout(capability="spares", kind="Drain", object=of, done=0, total=1, state="x", blockers=tuple(blockers))
    return row


def test_a_pod_in_the_way_names_the_budget_that_refused_its_eviction(recorder):
    recorder.record(evicted("db"))
    recorder.drain(10)
    db, other = recorder.explain(drain("db", "other")).blockers
    assert db.message == f"Runs on n1; the last eviction was refused: {REFUSED}"
    assert db.ways_out == ("kubectl get poddisruptionbudgets --namespace default", "wait")
    assert other.message == "Runs on n1"


def test_a_report_that_budgets_are_respected_is_no_refusal(recorder):
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "db"}
    event = Event(regarding=about, event_time="2029-12-31T23:59:00Z", type="Normal", reason="Draining")
    note = "3 nodes are drained within their disruption budgets"
    recorder.record_event(write_of(msgspec.structs.replace(event, note=note), "spares", T))
    recorder.drain(10)
    assert recorder.explain(drain("db")) == drain("db")


def test_a_refusal_is_forgotten_with_the_next_eviction_and_with_time(recorder, clock):
    recorder.record(evicted("db"))
    recorder.record(evicted("old"))
    recorder.record(evicted("db", Result.DONE, ""))
    recorder.drain(10)
    assert recorder.explain(drain("db")) == drain("db")
    assert recorder.explain(drain("old")) != drain("old")
    clock.later(recording.REFUSAL_SECONDS + 1)
    assert recorder.explain(drain("old")) == drain("old")


def test_an_event_about_a_template_names_its_pods(recorder):
    about = {"apiVersion": "v1", "kind": "NodeTemplate", "name": "web"}
    event = Event(regarding=about, event_time="2029-12-31T23:59:00Z", type="Warning", reason="EvictedFailed")
    recorder.record_event(write_of(msgspec.structs.replace(event, note=f"n1: {REFUSED}"), "spares", T))
    recorder.drain(10)
    (blocker,) = recorder.explain(drain("db")).blockers
    assert blocker.message.endswith(f"refused: n1: {REFUSED}")


def test_refusals_are_bounded(recorder):
    for number in range(recording.REFUSALS + 5):
        recorder.record(evicted(f"p{number}"))
    recorder.drain(10_000)
    assert len(recorder._refused) == recording.REFUSALS
    assert recorder.explain(drain("p0")) == drain("p0")
