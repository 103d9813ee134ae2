"""One pass, with everything around it played by the test."""

import asyncio
import dataclasses
from random import Random

import msgspec
import pytest
from tests.builders.labels import LABELS, RULE, LabelRule, RuleSpec, ref

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.apply.status import StatusResult
from nodeyard.client.errors import TransportError
from nodeyard.kube.objects import Node, ObjectMeta
from nodeyard.process.clock import settle
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.background import LoopInputs
from nodeyard.runtime.capability import Background, Event, PeerOperator, Report, Roots
from nodeyard.runtime.metrics import EventLatency, LoopMetrics
from nodeyard.runtime.reconcile.expectations import Expectations
from nodeyard.runtime.reconcile.reconciler import OBSERVE_SECONDS, Reconciler, Tools
from nodeyard.runtime.reconcile.result import Ending, ReconcileResult
from nodeyard.runtime.settings import Settings
from nodeyard.watch.reservations import Reservations


class Stage:
    """View, applier, status writer, recorder and gate in one."""

    def __init__(self, clock):
        self.clock = clock
        self.rule = LabelRule(metadata=ObjectMeta(name="a", uid="u"), spec=RuleSpec(team="blue"))
        self.nodes = [Node(metadata=ObjectMeta(name="n1", labels={RULE: "a"}))]
        self.leads = True
        self.unsynced = set()
        self.result = Result.DONE
        self.status_result = Result.DONE
        self.retry_after = 0.0
        self.story = []
        self.expectations = Expectations()
        self.loop_inputs = LoopInputs()
        self.latency = EventLatency(clock)
        self.reservations = Reservations()
        self.queued = []
        self.hears = None
        self.sends_after = 0.0
        self.before_sending = lambda: None
        self.plans_for = 0.0
        self.allowed = self.seen_at = self.freshness = None

    # the view
    def get(self, kind, _name, _namespace=""):
        return self.rule if kind.startswith("LabelRule") else None

    def all(self, _kind):
        return ()

    def indexed(self, _kind, _index, _value):
        return self.nodes

    def is_synced(self, kind):
        return kind not in self.unsynced

    # the gate
    def may_write(self):
        return self.leads

    # the rest
    async def apply(self, planned, *, may_write, seen_at):
        self.story.append("apply")
        self.seen_at = seen_at
        if self.hears is not None:
            self.expectations.observe("a", ("Node.core", "", self.hears))
        if self.sends_after:
            await self.clock.sleep(self.sends_after)
        self.before_sending()
        self.allowed = may_write()
        results = [
            ActionResult(action=action, result=self.result, message="why", retry_after=self.retry_after)
            for action in planned.plan.actions
        ]
        return Outcome(results=tuple(results))

    async def write(self, writes, _shown, *, may_write):
        self.story.append("status")
        return [StatusResult(object=each.object, result=self.status_result, message="why") for each in writes]

    async def run_planner(self, work):
        if self.plans_for:
            await self.clock.sleep(self.plans_for)
        return work()

    def record(self, event):
        self.story.append(event.reason)

    def reconciler(self, capability=LABELS, metrics_recorder=None, **settings):
        tools = Tools(
            view=self,
            applier=self,
            status_writer=self,
            recorder=self,
            fence_of=lambda _key: self,
            plan_executor=self.run_planner,
            clock=self.clock,
            metrics=LoopMetrics(Metrics()).of("labels"),
            random=Random(1),
            expectations=self.expectations,
            latency=self.latency,
            metrics_recorder=metrics_recorder,
            loop_inputs=self.loop_inputs,
            freshness=self.freshness,
            reservations=self.reservations,
            enqueue=self.queued.append,
        )
        return Reconciler(capability, tools, Settings(identity="me", **settings))


class Stale:
    """A watch that is broken, and what reading the roots comes to."""

    def __init__(self, found=lambda _refs: None):
        self.found = found
        self.read = []

    def staleness(self, _seconds=0.0):
        return "the watch is broken"

    async def refresh(self, refs):
        self.read += refs
        self.found(refs)


@pytest.fixture
def stage(clock):
    return Stage(clock)


async def test_a_pass_applies_then_writes_status_then_records(stage):
    result = await stage.reconciler().reconcile("a")
    assert stage.story == ["apply", "status", "Labelled"]
    assert result.ending is Ending.SETTLED


async def test_writes_are_dated_by_the_snapshot_however_long_planning_takes(stage, clock):
    await clock.advance(7.0)
    stage.plans_for = 3.0
    running = asyncio.create_task(stage.reconciler().reconcile("a"))
    await clock.advance(10.0)
    await running
    assert stage.seen_at == 7.0


async def test_a_small_key_is_planned_and_reported_inline(stage):
    stage.plans_for = 3.0
    capability = dataclasses.replace(LABELS, plans_inline=lambda key: key == "a")
    await stage.reconciler(capability).reconcile("a")
    assert stage.story == ["apply", "status", "Labelled"]
    assert stage.clock.monotonic() == 0.0


async def test_an_empty_plan_is_not_applied_but_reported(stage):
    stage.nodes = []
    await stage.reconciler().reconcile("a")
    assert stage.story == ["status"]


async def test_a_follower_does_not_even_plan(stage):
    stage.leads = False
    planned = []
    capability = dataclasses.replace(LABELS, plan=lambda *given: planned.append(given))
    assert (await stage.reconciler(capability).reconcile("a")).ending is Ending.NOT_LEADING
    assert planned == []


async def test_a_cache_that_is_not_complete_is_not_planned_on(stage):
    stage.unsynced.add("Node.core")
    result = await stage.reconciler().reconcile("a")
    assert (result.ending, stage.story) == (Ending.NOT_SYNCED, [])
    assert result.requeue_after is not None


async def test_a_kind_that_is_watched_only_by_need_holds_nothing_up(stage):
    stage.unsynced.add("Node.core")
    watches = tuple(dataclasses.replace(watch, needed=lambda _view: True) for watch in LABELS.watches)
    await stage.reconciler(dataclasses.replace(LABELS, watches=watches)).reconcile("a")
    assert "apply" in stage.story


async def test_a_key_without_an_object_is_gone(stage):
    stage.rule = None
    assert (await stage.reconciler().reconcile("a")).ending is Ending.GONE


async def test_a_paused_root_ends_the_pass_unless_the_planner_minds_pauses_itself(stage):
    paused = ObjectMeta(name="a", annotations={"nodeyard.dev/paused": "true"})
    stage.rule = msgspec.structs.replace(stage.rule, metadata=paused)
    assert await stage.reconciler().reconcile("a") == ReconcileResult(Ending.PAUSED)
    assert stage.story == []
    await stage.reconciler(
        dataclasses.replace(LABELS, roots=dataclasses.replace(LABELS.roots, plan_handles_pause=True))
    ).reconcile("a")
    assert "apply" in stage.story


@pytest.mark.parametrize(
    ("result", "ending"),
    [(Result.CONFLICT, Ending.CONFLICT), (Result.DENIED, Ending.DENIED), (Result.FAILED, Ending.FAILED)],
)
async def test_the_outcome_of_the_writes_decides_the_requeue(stage, result, ending):
    stage.result = result
    assert (await stage.reconciler().reconcile("a")).ending is ending


async def test_a_denial_waits_long(stage):
    stage.result = Result.DENIED
    assert (await stage.reconciler(denied_retry=123.0).reconcile("a")).requeue_after == 123


async def test_a_status_that_could_not_be_written_is_a_failure(stage):
    stage.status_result = Result.FAILED
    assert (await stage.reconciler().reconcile("a")).ending is Ending.FAILED


@pytest.mark.parametrize("part", ["collect", "plan", "report"])
async def test_an_exception_of_a_capability_affects_only_its_key(stage, part):
    def broken(*_):
        raise KeyError("surprise")

    capability = dataclasses.replace(LABELS, **{part: broken})
    assert (await stage.reconciler(capability).reconcile("a")).ending is Ending.ERROR


async def test_a_change_replaces_unsent_actions_but_only_after_a_minimum_time(stage, clock):
    stage.hears = "n2"
    await stage.reconciler().reconcile("a")
    assert stage.allowed is True
    stage.sends_after = 2.0
    passing = asyncio.create_task(stage.reconciler().reconcile("a"))
    await clock.advance(3)
    await passing
    assert stage.allowed is False


async def test_the_echo_of_its_own_writes_is_no_change(stage, clock):
    stage.hears, stage.sends_after = "n1", 2.0
    passing = asyncio.create_task(stage.reconciler().reconcile("a"))
    await clock.advance(3)
    await passing
    assert stage.allowed is True


@pytest.mark.parametrize(
    "change",
    [{"annotations": {"nodeyard.dev/paused": "true"}}, {"generation": 7}, {"uid": "another"}],
    ids=["paused", "edited", "replaced"],
)
async def test_a_root_that_is_paused_or_edited_while_a_plan_is_sent_holds_the_rest_at_once(stage, change):
    def edit():
        metadata = msgspec.structs.replace(stage.rule.metadata, **change)
        stage.rule = msgspec.structs.replace(stage.rule, metadata=metadata)

    stage.before_sending = edit
    await stage.reconciler().reconcile("a")
    assert stage.allowed is False


async def test_a_status_that_changes_while_a_plan_is_sent_holds_nothing(stage):
    def change():
        metadata = msgspec.structs.replace(stage.rule.metadata, resource_version="9")
        stage.rule = msgspec.structs.replace(stage.rule, metadata=metadata)

    stage.before_sending = change
    await stage.reconciler().reconcile("a")
    assert stage.allowed is True


async def test_standing_events_are_recorded_once_and_others_each_time(stage):
    def report(*_):
        happened = Event(ref(stage.rule), "Normal", "Happened", "again")
        return Report(events=[happened, Event(ref(stage.rule), "Warning", "Stands", "still", is_standing=True)])

    reconciler = stage.reconciler(dataclasses.replace(LABELS, report=report))
    await reconciler.reconcile("a")
    await reconciler.reconcile("a")
    told = [each for each in stage.story if each in ("Happened", "Stands")]
    assert told == ["Happened", "Stands", "Happened"]


def with_loops(**options):
    background = Background((), lambda snapshot, now: (snapshot.rule.spec.team, now.year))
    return dataclasses.replace(LABELS, background=background, **options)


async def test_loops_get_the_input_of_a_key_as_soon_as_it_is_collected(stage):
    async def apply(_planned, *, may_write, seen_at):
        assert dict(stage.loop_inputs.current) == {"a": ("blue", 2026)}
        return Outcome()

    stage.apply = apply
    assert (await stage.reconciler(with_loops()).reconcile("a")).ending is Ending.SETTLED
    assert dict(stage.loop_inputs.current) == {"a": ("blue", 2026)}


async def test_loops_go_on_for_a_paused_key(stage):
    paused = ObjectMeta(name="a", annotations={"nodeyard.dev/paused": "true"})
    stage.rule = msgspec.structs.replace(stage.rule, metadata=paused)
    result = await stage.reconciler(with_loops()).reconcile("a")
    assert (result.ending, result.requeue_after) == (Ending.PAUSED, OBSERVE_SECONDS)
    assert "a" in stage.loop_inputs.current


async def test_in_observe_only_mode_loops_get_input_with_a_closed_fence(stage):
    reconciler = stage.reconciler(with_loops(), observe=True)
    assert (await reconciler.reconcile("a")).ending is Ending.OBSERVED
    assert "a" in stage.loop_inputs.current
    assert reconciler.is_observing


async def test_while_a_peer_operator_runs_loops_get_input_with_a_closed_fence(stage):
    peer = PeerOperator("other", "Scale it down.")
    reconciler = stage.reconciler(with_loops(replaces=lambda _view, _now: peer))
    assert not reconciler.is_observing
    await reconciler.reconcile("a")
    assert "a" in stage.loop_inputs.current
    assert reconciler.is_observing
    peer = None
    await reconciler.reconcile("a")
    assert not reconciler.is_observing


async def test_with_a_peer_operator_of_another_part_ours_is_written(stage):
    peer = PeerOperator("other", "Stop it, and its part is ours.", is_apart=True)
    reconciler = stage.reconciler(with_loops(replaces=lambda _view, _now: peer))
    assert (await reconciler.reconcile("a")).ending is Ending.SETTLED
    assert not reconciler.is_observing


async def test_loops_lose_the_input_of_a_deleted_key(stage):
    reconciler = stage.reconciler(with_loops())
    await reconciler.reconcile("a")
    stage.rule = None
    await reconciler.reconcile("a")
    assert not stage.loop_inputs.current


async def test_the_metrics_get_how_long_an_event_has_waited_to_be_written(stage, clock):
    waits = []

    class Recorder:
        def record(self, outcome):
            waits.append(outcome.waited)

        def forget(self, _key):
            """Nothing is kept."""

    capability = dataclasses.replace(LABELS, report=lambda _snapshot, _plan, outcome, _now: Report(metrics=outcome))
    reconciler = stage.reconciler(capability, metrics_recorder=Recorder())
    stage.latency.mark("a")
    await clock.advance(2)
    stage.sends_after = 1.5
    stage.result = Result.FAILED
    for _ in range(2):
        passing = asyncio.create_task(reconciler.reconcile("a"))
        await clock.advance(1.5)
        await passing
        stage.result = Result.DONE
    await clock.advance(10)
    stage.sends_after = 0.0
    await reconciler.reconcile("a")
    assert waits == [3.5, 5.0, None]


async def test_behind_a_broken_watch_the_root_is_read_once_before_the_writes(stage):
    stage.freshness = Stale()
    assert (await stage.reconciler().reconcile("a")).ending is Ending.SETTLED
    assert (stage.freshness.read, stage.story) == ([ref(stage.rule)], ["apply", "status", "Labelled"])


async def test_a_root_that_is_decoded_for_each_read_is_compared_by_its_version(stage):
    capability = dataclasses.replace(
        LABELS, roots=Roots(lambda view, key: [msgspec.structs.replace(view.get("LabelRule", key))])
    )
    stage.freshness = Stale()
    assert (await stage.reconciler(capability).reconcile("a")).ending is Ending.SETTLED
    assert (stage.allowed, stage.story[0]) == (True, "apply")


async def test_a_pass_without_writes_needs_no_read_behind_a_broken_watch(stage):
    stage.nodes, stage.freshness = [], Stale()
    await stage.reconciler().reconcile("a")
    assert stage.freshness.read == []


async def test_a_root_that_has_changed_behind_a_broken_watch_is_planned_again_and_nothing_written(stage):
    def change(_refs):
        metadata = ObjectMeta(name="a", uid="u", resource_version="2")
        stage.rule = LabelRule(metadata=metadata, spec=RuleSpec(team="red"))

    stage.freshness = Stale(change)
    assert (await stage.reconciler().reconcile("a")).ending is Ending.CONFLICT
    assert stage.story == []


async def test_a_root_that_cannot_be_read_behind_a_broken_watch_holds_the_writes(stage):
    def fail(_refs):
        raise TransportError("cut", may_have_run=False)

    stage.freshness = Stale(fail)
    assert (await stage.reconciler().reconcile("a")).ending is Ending.FAILED
    assert stage.story == []


async def test_behind_a_broken_watch_a_long_plan_stops_after_a_second_and_is_planned_again(stage, clock):
    stage.freshness, stage.sends_after, stage.result = Stale(), 1.5, Result.HELD
    running = asyncio.create_task(stage.reconciler().reconcile("a"))
    await clock.advance(2)
    assert (await running) == ReconcileResult(Ending.HELD, 0.0)
    assert stage.allowed is False


async def test_a_status_that_admission_denies_is_logged_and_retried_with_the_backoff_of_denials(stage, capsys):
    stage.status_result = Result.DENIED
    assert (await stage.reconciler().reconcile("a")).ending is Ending.DENIED
    assert "status not written" in capsys.readouterr().out


def taking(budget, *, is_inline=True):
    """A capability whose plans take from a shared budget."""

    def plan(*given):
        return msgspec.structs.replace(LABELS.plan(*given), reserves={budget: "token"})

    return dataclasses.replace(LABELS, plan=plan, plans_inline=lambda _key: is_inline)


async def advance_pass(stage):
    """Let plan and report of a pass run, each in the thread."""
    await stage.clock.advance(stage.plans_for)
    await stage.clock.advance(stage.plans_for)


async def test_a_key_planned_in_a_thread_is_planned_again_if_another_took_from_its_budget_meanwhile(stage):
    stage.plans_for = 1.0
    reconciler = stage.reconciler(taking("b", is_inline=False))
    running = asyncio.ensure_future(reconciler.reconcile("a"))
    await settle()
    stage.reservations.reserve("other", {"b": "token"})
    await advance_pass(stage)
    assert (await running).ending is Ending.CONFLICT
    assert (stage.story, stage.reservations.reserved("b")) == ([], {"other": "token"})
    running = asyncio.ensure_future(reconciler.reconcile("a"))
    await advance_pass(stage)
    assert (await running).ending is Ending.SETTLED


async def test_a_key_planned_in_a_thread_goes_on_if_another_budget_has_changed_meanwhile(stage):
    stage.plans_for = 1.0
    running = asyncio.ensure_future(stage.reconciler(taking("b", is_inline=False)).reconcile("a"))
    await settle()
    stage.reservations.reserve("other", {"c": "token"})
    await advance_pass(stage)
    assert (await running).ending is Ending.SETTLED


@pytest.mark.parametrize("result", [Result.DONE, Result.FAILED, Result.DENIED, Result.HELD])
async def test_reservations_of_a_plan_end_with_the_response(stage, result):
    found = {}
    stage.result = result
    stage.before_sending = lambda: found.update(stage.reservations.reserved("b"))
    await stage.reconciler(taking("b")).reconcile("a")
    assert found == {"a": "token"}
    assert not stage.reservations.reserved("b")


@pytest.mark.parametrize(("result", "queued"), [(Result.DONE, []), (Result.FAILED, ["w"]), (Result.HELD, ["w"])])
async def test_keys_that_wait_for_a_budget_are_requeued_if_a_part_of_it_was_not_used(stage, result, queued):
    stage.reservations.reserve("w", {}, ["b"])
    stage.result = result
    await stage.reconciler(taking("b")).reconcile("a")
    assert stage.queued == queued


async def test_a_failed_pass_drops_its_reservations(stage):
    stage.reservations.reserve("w", {}, ["b"])
    stage.before_sending = lambda: 1 / 0
    await stage.reconciler(taking("b")).reconcile("a")
    assert not stage.reservations.reserved("b")
    assert stage.queued == ["w"]


async def test_a_key_that_is_reconciled_does_not_wait_any_more_even_if_it_is_paused(stage):
    stage.reservations.reserve("a", {}, ["b"])
    stage.rule = LabelRule(metadata=ObjectMeta(name="a", uid="u", annotations={"nodeyard.dev/paused": "true"}))
    await stage.reconciler(LABELS).reconcile("a")
    assert not stage.reservations.waiting("b")
