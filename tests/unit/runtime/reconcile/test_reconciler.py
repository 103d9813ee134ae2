"""One pass with faked dependencies."""

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


class Harness:
    """Fake view, applier, status writer, recorder and write fence."""

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

    # the write fence
    def may_write(self):
        return self.leads

    # the applier and others
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
    """A broken watch, and the result of reading the roots."""

    def __init__(self, found=lambda _refs: None):
        self.found = found
        self.read = []

    def staleness(self, _seconds=0.0):
        return "the watch is broken"

    async def refresh(self, refs):
        self.read += refs
        self.found(refs)


@pytest.fixture
def harness(clock):
    return Harness(clock)


async def test_a_pass_applies_then_writes_status_then_records(harness):
    result = await harness.reconciler().reconcile("a")
    assert harness.story == ["apply", "status", "Labelled"]
    assert result.ending is Ending.SETTLED


async def test_writes_are_dated_by_the_snapshot_however_long_planning_takes(harness, clock):
    await clock.advance(7.0)
    harness.plans_for = 3.0
    running = asyncio.create_task(harness.reconciler().reconcile("a"))
    await clock.advance(10.0)
    await running
    assert harness.seen_at == 7.0


async def test_a_small_key_is_planned_and_reported_inline(harness):
    harness.plans_for = 3.0
    capability = dataclasses.replace(LABELS, plans_inline=lambda key: key == "a")
    await harness.reconciler(capability).reconcile("a")
    assert harness.story == ["apply", "status", "Labelled"]
    assert harness.clock.monotonic() == 0.0


async def test_an_empty_plan_is_not_applied_but_reported(harness):
    harness.nodes = []
    await harness.reconciler().reconcile("a")
    assert harness.story == ["status"]


async def test_a_follower_does_not_even_plan(harness):
    harness.leads = False
    planned = []
    capability = dataclasses.replace(LABELS, plan=lambda *given: planned.append(given))
    assert (await harness.reconciler(capability).reconcile("a")).ending is Ending.NOT_LEADING
    assert planned == []


async def test_a_cache_that_is_not_complete_is_not_planned_on(harness):
    harness.unsynced.add("Node.core")
    result = await harness.reconciler().reconcile("a")
    assert (result.ending, harness.story) == (Ending.NOT_SYNCED, [])
    assert result.requeue_after is not None


async def test_a_kind_that_is_watched_only_by_need_holds_nothing_up(harness):
    harness.unsynced.add("Node.core")
    watches = tuple(dataclasses.replace(watch, needed=lambda _view: True) for watch in LABELS.watches)
    await harness.reconciler(dataclasses.replace(LABELS, watches=watches)).reconcile("a")
    assert "apply" in harness.story


async def test_a_key_without_an_object_is_gone(harness):
    harness.rule = None
    assert (await harness.reconciler().reconcile("a")).ending is Ending.GONE


async def test_a_paused_root_ends_the_pass_unless_the_planner_minds_pauses_itself(harness):
    paused = ObjectMeta(name="a", annotations={"nodeyard.dev/paused": "true"})
    harness.rule = msgspec.structs.replace(harness.rule, metadata=paused)
    assert await harness.reconciler().reconcile("a") == ReconcileResult(Ending.PAUSED)
    assert harness.story == []
    await harness.reconciler(
        dataclasses.replace(LABELS, roots=dataclasses.replace(LABELS.roots, plan_handles_pause=True))
    ).reconcile("a")
    assert "apply" in harness.story


@pytest.mark.parametrize(
    ("result", "ending"),
    [(Result.CONFLICT, Ending.CONFLICT), (Result.DENIED, Ending.DENIED), (Result.FAILED, Ending.FAILED)],
)
async def test_the_outcome_of_the_writes_decides_the_requeue(harness, result, ending):
    harness.result = result
    assert (await harness.reconciler().reconcile("a")).ending is ending


async def test_a_denial_waits_long(harness):
    harness.result = Result.DENIED
    assert (await harness.reconciler(denied_retry=123.0).reconcile("a")).requeue_after == 123


async def test_a_status_that_could_not_be_written_is_a_failure(harness):
    harness.status_result = Result.FAILED
    assert (await harness.reconciler().reconcile("a")).ending is Ending.FAILED


@pytest.mark.parametrize("part", ["collect", "plan", "report"])
async def test_an_exception_of_a_capability_affects_only_its_key(harness, part):
    def broken(*_):
        raise KeyError("surprise")

    capability = dataclasses.replace(LABELS, **{part: broken})
    assert (await harness.reconciler(capability).reconcile("a")).ending is Ending.ERROR


async def test_a_change_replaces_unsent_actions_but_only_after_a_minimum_time(harness, clock):
    harness.hears = "n2"
    await harness.reconciler().reconcile("a")
    assert harness.allowed is True
    harness.sends_after = 2.0
    passing = asyncio.create_task(harness.reconciler().reconcile("a"))
    await clock.advance(3)
    await passing
    assert harness.allowed is False


async def test_the_echo_of_its_own_writes_is_no_change(harness, clock):
    harness.hears, harness.sends_after = "n1", 2.0
    passing = asyncio.create_task(harness.reconciler().reconcile("a"))
    await clock.advance(3)
    await passing
    assert harness.allowed is True


@pytest.mark.parametrize(
    "change",
    [{"annotations": {"nodeyard.dev/paused": "true"}}, {"generation": 7}, {"uid": "another"}],
    ids=["paused", "edited", "replaced"],
)
async def test_a_root_that_is_paused_or_edited_while_a_plan_is_sent_holds_the_rest_at_once(harness, change):
    def edit():
        metadata = msgspec.structs.replace(harness.rule.metadata, **change)
        harness.rule = msgspec.structs.replace(harness.rule, metadata=metadata)

    harness.before_sending = edit
    await harness.reconciler().reconcile("a")
    assert harness.allowed is False


async def test_a_status_that_changes_while_a_plan_is_sent_holds_nothing(harness):
    def change():
        metadata = msgspec.structs.replace(harness.rule.metadata, resource_version="9")
        harness.rule = msgspec.structs.replace(harness.rule, metadata=metadata)

    harness.before_sending = change
    await harness.reconciler().reconcile("a")
    assert harness.allowed is True


async def test_standing_events_are_recorded_once_and_others_each_time(harness):
    def report(*_):
        happened = Event(ref(harness.rule), "Normal", "Happened", "again")
        return Report(events=[happened, Event(ref(harness.rule), "Warning", "Stands", "still", is_standing=True)])

    reconciler = harness.reconciler(dataclasses.replace(LABELS, report=report))
    await reconciler.reconcile("a")
    await reconciler.reconcile("a")
    told = [each for each in harness.story if each in ("Happened", "Stands")]
    assert told == ["Happened", "Stands", "Happened"]


def with_loops(**options):
    background = Background((), lambda snapshot, now: (snapshot.rule.spec.team, now.year))
    return dataclasses.replace(LABELS, background=background, **options)


async def test_loops_get_the_input_of_a_key_as_soon_as_it_is_collected(harness):
    async def apply(_planned, *, may_write, seen_at):
        assert dict(harness.loop_inputs.current) == {"a": ("blue", 2026)}
        return Outcome()

    harness.apply = apply
    assert (await harness.reconciler(with_loops()).reconcile("a")).ending is Ending.SETTLED
    assert dict(harness.loop_inputs.current) == {"a": ("blue", 2026)}


async def test_loops_continue_for_a_paused_key(harness):
    paused = ObjectMeta(name="a", annotations={"nodeyard.dev/paused": "true"})
    harness.rule = msgspec.structs.replace(harness.rule, metadata=paused)
    result = await harness.reconciler(with_loops()).reconcile("a")
    assert (result.ending, result.requeue_after) == (Ending.PAUSED, OBSERVE_SECONDS)
    assert "a" in harness.loop_inputs.current


async def test_in_observe_only_mode_loops_get_input_with_a_closed_fence(harness):
    reconciler = harness.reconciler(with_loops(), observe=True)
    assert (await reconciler.reconcile("a")).ending is Ending.OBSERVED
    assert "a" in harness.loop_inputs.current
    assert reconciler.is_observing


async def test_while_a_peer_operator_runs_loops_get_input_with_a_closed_fence(harness):
    peer = PeerOperator("other", "Scale it down.")
    reconciler = harness.reconciler(with_loops(replaces=lambda _view, _now: peer))
    assert not reconciler.is_observing
    await reconciler.reconcile("a")
    assert "a" in harness.loop_inputs.current
    assert reconciler.is_observing
    peer = None
    await reconciler.reconcile("a")
    assert not reconciler.is_observing


async def test_with_a_peer_operator_of_another_part_ours_is_written(harness):
    peer = PeerOperator("other", "Stop it, and its part is ours.", is_apart=True)
    reconciler = harness.reconciler(with_loops(replaces=lambda _view, _now: peer))
    assert (await reconciler.reconcile("a")).ending is Ending.SETTLED
    assert not reconciler.is_observing


async def test_loops_lose_the_input_of_a_deleted_key(harness):
    reconciler = harness.reconciler(with_loops())
    await reconciler.reconcile("a")
    harness.rule = None
    await reconciler.reconcile("a")
    assert not harness.loop_inputs.current


async def test_the_metrics_get_how_long_an_event_has_waited_to_be_written(harness, clock):
    waits = []

    class Recorder:
        def record(self, outcome):
            waits.append(outcome.waited)

        def forget(self, _key):
            """Keep nothing by key."""

    capability = dataclasses.replace(LABELS, report=lambda _snapshot, _plan, outcome, _now: Report(metrics=outcome))
    reconciler = harness.reconciler(capability, metrics_recorder=Recorder())
    harness.latency.mark("a")
    await clock.advance(2)
    harness.sends_after = 1.5
    harness.result = Result.FAILED
    for _ in range(2):
        passing = asyncio.create_task(reconciler.reconcile("a"))
        await clock.advance(1.5)
        await passing
        harness.result = Result.DONE
    await clock.advance(10)
    harness.sends_after = 0.0
    await reconciler.reconcile("a")
    assert waits == [3.5, 5.0, None]


async def test_behind_a_broken_watch_the_root_is_read_once_before_the_writes(harness):
    harness.freshness = Stale()
    assert (await harness.reconciler().reconcile("a")).ending is Ending.SETTLED
    assert (harness.freshness.read, harness.story) == ([ref(harness.rule)], ["apply", "status", "Labelled"])


async def test_a_root_that_is_decoded_for_each_read_is_compared_by_its_version(harness):
    capability = dataclasses.replace(
        LABELS, roots=Roots(lambda view, key: [msgspec.structs.replace(view.get("LabelRule", key))])
    )
    harness.freshness = Stale()
    assert (await harness.reconciler(capability).reconcile("a")).ending is Ending.SETTLED
    assert (harness.allowed, harness.story[0]) == (True, "apply")


async def test_a_pass_without_writes_needs_no_read_behind_a_broken_watch(harness):
    harness.nodes, harness.freshness = [], Stale()
    await harness.reconciler().reconcile("a")
    assert harness.freshness.read == []


async def test_a_root_that_has_changed_behind_a_broken_watch_is_planned_again_and_nothing_written(harness):
    def change(_refs):
        metadata = ObjectMeta(name="a", uid="u", resource_version="2")
        harness.rule = LabelRule(metadata=metadata, spec=RuleSpec(team="red"))

    harness.freshness = Stale(change)
    assert (await harness.reconciler().reconcile("a")).ending is Ending.CONFLICT
    assert harness.story == []


async def test_a_root_that_cannot_be_read_behind_a_broken_watch_holds_the_writes(harness):
    def fail(_refs):
        raise TransportError("cut", may_have_run=False)

    harness.freshness = Stale(fail)
    assert (await harness.reconciler().reconcile("a")).ending is Ending.FAILED
    assert harness.story == []


async def test_behind_a_broken_watch_a_long_plan_stops_after_a_second_and_is_planned_again(harness, clock):
    harness.freshness, harness.sends_after, harness.result = Stale(), 1.5, Result.HELD
    running = asyncio.create_task(harness.reconciler().reconcile("a"))
    await clock.advance(2)
    assert (await running) == ReconcileResult(Ending.HELD, 0.0)
    assert harness.allowed is False


async def test_a_status_that_admission_denies_is_logged_and_retried_with_the_backoff_of_denials(harness, capsys):
    harness.status_result = Result.DENIED
    assert (await harness.reconciler().reconcile("a")).ending is Ending.DENIED
    assert "status not written" in capsys.readouterr().out


def taking(budget, *, is_inline=True):
    """A capability whose plans take from a shared budget."""

    def plan(*given):
        return msgspec.structs.replace(LABELS.plan(*given), reserves={budget: "token"})

    return dataclasses.replace(LABELS, plan=plan, plans_inline=lambda _key: is_inline)


async def advance_pass(harness):
    """Let plan and report of a pass run in the thread."""
    await harness.clock.advance(harness.plans_for)
    await harness.clock.advance(harness.plans_for)


async def test_a_key_planned_in_a_thread_is_planned_again_if_another_took_from_its_budget_meanwhile(harness):
    harness.plans_for = 1.0
    reconciler = harness.reconciler(taking("b", is_inline=False))
    running = asyncio.ensure_future(reconciler.reconcile("a"))
    await settle()
    harness.reservations.reserve("other", {"b": "token"})
    await advance_pass(harness)
    assert (await running).ending is Ending.CONFLICT
    assert (harness.story, harness.reservations.reserved("b")) == ([], {"other": "token"})
    running = asyncio.ensure_future(reconciler.reconcile("a"))
    await advance_pass(harness)
    assert (await running).ending is Ending.SETTLED


async def test_a_key_planned_in_a_thread_continues_if_another_budget_has_changed_meanwhile(harness):
    harness.plans_for = 1.0
    running = asyncio.ensure_future(harness.reconciler(taking("b", is_inline=False)).reconcile("a"))
    await settle()
    harness.reservations.reserve("other", {"c": "token"})
    await advance_pass(harness)
    assert (await running).ending is Ending.SETTLED


@pytest.mark.parametrize("result", [Result.DONE, Result.FAILED, Result.DENIED, Result.HELD])
async def test_reservations_of_a_plan_end_with_the_response(harness, result):
    found = {}
    harness.result = result
    harness.before_sending = lambda: found.update(harness.reservations.reserved("b"))
    await harness.reconciler(taking("b")).reconcile("a")
    assert found == {"a": "token"}
    assert not harness.reservations.reserved("b")


@pytest.mark.parametrize(("result", "queued"), [(Result.DONE, []), (Result.FAILED, ["w"]), (Result.HELD, ["w"])])
async def test_keys_that_wait_for_a_budget_are_requeued_if_a_part_of_it_was_not_used(harness, result, queued):
    harness.reservations.reserve("w", {}, ["b"])
    harness.result = result
    await harness.reconciler(taking("b")).reconcile("a")
    assert harness.queued == queued


async def test_a_failed_pass_drops_its_reservations(harness):
    harness.reservations.reserve("w", {}, ["b"])
    harness.before_sending = lambda: 1 / 0
    await harness.reconciler(taking("b")).reconcile("a")
    assert not harness.reservations.reserved("b")
    assert harness.queued == ["w"]


async def test_a_key_that_is_reconciled_does_not_wait_any_more_even_if_it_is_paused(harness):
    harness.reservations.reserve("a", {}, ["b"])
    harness.rule = LabelRule(metadata=ObjectMeta(name="a", uid="u", annotations={"nodeyard.dev/paused": "true"}))
    await harness.reconciler(LABELS).reconcile("a")
    assert not harness.reservations.waiting("b")
