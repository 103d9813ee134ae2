"""The recorder: passes, writes, brakes, approvals and marks of the last 24 hours, in bounded memory.

    passes of the reconcilers ─┐                              ┌─ one bucket a minute per capability
    Events, Leases, roots,     ├─▶ pending ──drain──▶ lane ───┤
    contact with leaves       ─┘                              └─ the last writes, encoded

A bucket counts, and names a bounded number of reasons and marks; the writes of a capability have a bound in bytes, so a
busy capability keeps fewer of them. A longer span is read in larger steps.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from nodeyard.apply.outcome import ActionResult, Result
from nodeyard.client.decoder import PartialMetadata
from nodeyard.dashboard.feed import Visible
from nodeyard.dashboard.wire import Struct, encode
from nodeyard.kube.names import APPROVALS
from nodeyard.kube.timestamps import parse_rfc3339_or_none
from nodeyard.plan.layout import counted
from nodeyard.plan.model import FieldChange, ObjectRef, Verb
from nodeyard.process.clock import Clock
from nodeyard.runtime.annotations import annotations_of
from nodeyard.runtime.capability import Key
from nodeyard.runtime.reconcile.passes import PassEvent
from nodeyard.runtime.reconcile.result import Ending
from nodeyard.runtime.surface import Blocker, Places, Rollout

SECONDS: Final = 24 * 3600.0
STEP: Final = 60
POINTS: Final = 300
"""Bound of the points of a lane that one answer has."""
REASONS: Final = 32
"""Reasons that a bucket counts apart; the others are one."""
OTHER: Final = "Other"
MARKS: Final = 8
"""Marks of a bucket; later ones of the same minute are only counted."""
WRITE_BYTES: Final = 16 * 1024
"""Bound of one write; with a longer diff, only its first lines are kept."""
LANE_BYTES: Final = 8 << 20
"""Bound of the writes of one capability."""
PENDING: Final = 20_000
"""Bound of what is not drained yet; the oldest is lost first."""
PAGE: Final = 50
REFUSALS: Final = 1000
"""Refused evictions that are remembered."""
REFUSAL_SECONDS: Final = 3600.0
BUDGET: Final = "disruption budget"
"""In the API server's answer to an eviction that a PodDisruptionBudget does not allow."""
_MESSAGE: Final = 1000
_LINES: Final = 40
_WARNING: Final = "Warning"

_BAD: Final = frozenset({Result.DENIED, Result.FAILED, Result.UNKNOWN})
_UNSENT: Final = frozenset({Result.HELD, Result.SKIPPED})
_NO_PASS: Final = frozenset({Ending.NOT_LEADING, Ending.NOT_SYNCED})


class Mark(Struct, frozen=True):
    """Something that happened once: Leader, Restart, Contact, Approval or Brake."""

    type: str
    message: str
    t: float = 0.0
    """When, exactly: its point counts a minute or more."""


class Point(Struct, frozen=True):
    """Counts from `t` until the next point."""

    t: float
    passes: int = 0
    writes: dict[str, int] = {}
    """By reason."""
    brakes: int = 0
    approvals: int = 0
    errors: int = 0
    marks: tuple[Mark, ...] = ()


class Entry(Point, frozen=True, kw_only=True):
    """A point of the feed: the present minute of one capability."""

    capability: str


class RecordedWrite(Struct, frozen=True):
    t: float
    capability: str
    key: Key
    verb: str
    object: ObjectRef
    reason: str
    message: str
    outcome: str
    diff: tuple[FieldChange, ...] = ()


@dataclass
class Bucket:
    passes: int = 0
    writes: Counter[str] = field(default_factory=Counter)
    brakes: int = 0
    approvals: int = 0
    errors: int = 0
    marks: list[Mark] = field(default_factory=list)

    def count_write(self, reason: str, number: int = 1) -> None:
        self.writes[reason if reason in self.writes or len(self.writes) < REASONS else OTHER] += number

    def add(self, other: Bucket) -> None:
        self.passes += other.passes
        self.brakes += other.brakes
        self.approvals += other.approvals
        self.errors += other.errors
        self.marks += other.marks[: max(0, MARKS - len(self.marks))]
        for reason, number in other.writes.items():
            self.count_write(reason, number)

    def facts(self) -> dict[str, Any]:
        return {
            "passes": self.passes,
            "writes": dict(self.writes),
            "brakes": self.brakes,
            "approvals": self.approvals,
            "errors": self.errors,
            "marks": tuple(self.marks),
        }


class _Kept(NamedTuple):
    t: float
    encoded: bytes


class Lane:
    """The recording of one capability."""

    def __init__(self) -> None:
        self.buckets: dict[int, Bucket] = {}
        """By the number of their minute."""
        self.writes: deque[_Kept] = deque()
        self.bytes = 0

    def bucket(self, t: float) -> Bucket:
        return self.buckets.setdefault(int(t // STEP), Bucket())

    def keep(self, write: RecordedWrite) -> None:
        encoded = encode(write)
        if len(encoded) > WRITE_BYTES:
            short = tuple(_shorten(each) for each in write.diff[:_LINES])
            encoded = encode(msgspec.structs.replace(write, diff=short, message=write.message[:_MESSAGE]))
        if len(encoded) > WRITE_BYTES:
            encoded = encode(msgspec.structs.replace(write, diff=(), message=write.message[:_MESSAGE]))
        self.writes.append(_Kept(write.t, encoded))
        self.bytes += len(encoded)
        while self.bytes > LANE_BYTES:
            self._drop()

    def forget(self, before: float) -> None:
        for number in [number for number in self.buckets if (number + 1) * STEP <= before]:
            del self.buckets[number]
        while self.writes and self.writes[0].t < before:
            self._drop()

    def _drop(self) -> None:
        self.bytes -= len(self.writes.popleft().encoded)


def _shorten(change: FieldChange) -> FieldChange:
    """Return a line of a diff with its values cut to a few characters."""
    texts = [each if each is None else str(each)[:100] for each in (change.from_, change.to)]
    return FieldChange(path=change.path[:300], from_=texts[0], to=texts[1])


class _Approval(msgspec.Struct, frozen=True):
    id: str
    by: str = ""
    reason: str = ""


_Pending = tuple[float, PassEvent | RecordedWrite]
_Subject = tuple[str, str, str]


class Recorder:
    def __init__(self, clock: Clock, capabilities: Iterable[str]) -> None:
        self._clock = clock
        self.lanes = {name: Lane() for name in capabilities}
        self.began = self._now
        self._pending: deque[_Pending] = deque(maxlen=PENDING)
        self._results: deque[tuple[float, PassEvent, ActionResult]] = deque()
        """Results of the outcome that is being recorded."""
        self._held: dict[tuple[str, Key], str] = {}
        self._refused: dict[_Subject, tuple[float, str]] = {}
        """Evictions that a PodDisruptionBudget refused, the latest last, by pod or by what an Event is about."""
        self._holders: dict[str, str] = {}
        self._contacts: dict[tuple[str, str], str] = {}
        self._changed: set[str] = set()

    @property
    def _now(self) -> float:
        return round(self._clock.now().timestamp(), 3)

    # input

    def record(self, event: PassEvent) -> None:
        """Take a pass of this process's own reconciler; constant work."""
        if event.capability in self.lanes:
            self._pending.append((self._now, event))

    def record_event(self, write: RecordedWrite) -> None:
        """Take what an operator elsewhere has reported by an Event; constant work."""
        self._pending.append((write.t, write))

    def observe_approvals(self, capability: str, old: Any | None, new: Any | None) -> None:
        """Record the approvals that were written on a root object."""
        if old is None or new is None or annotations_of(old).get(APPROVALS) == annotations_of(new).get(APPROVALS):
            return
        known = set(_approvals(old))
        for each in _approvals(new):
            if each not in known:
                who, why = each.by or "Somebody", f": {each.reason}" if each.reason else ""
                self.lanes[capability].bucket(self._now).approvals += 1
                self.mark(capability, "Approval", f"{who} approved {each.id}{why}"[:_MESSAGE])

    def observe_holder(self, capability: str, holder: str) -> None:
        """Record a change of the process that holds the Lease of a capability; empty: nobody does."""
        before = self._holders.get(capability)
        self._holders[capability] = holder
        if before is None or before == holder:
            return
        if not holder:
            self.mark(capability, "Leader", f"{before} released the Lease or stopped renewing it")
        elif before and _host(before) == _host(holder):
            self.mark(capability, "Restart", f"{holder} restarted")
        else:
            self.mark(capability, "Leader", f"{holder} leads{f' instead of {before}' if before else ''}")

    def observe_places(self, capability: str, places: Places) -> None:
        """Record a change of the contact with a leaf."""
        for leaf in places.leaves:
            at, state = (capability, leaf.name), leaf.contact.state
            before, self._contacts[at] = self._contacts.get(at), state
            if before is not None and before != state:
                message = leaf.contact.message or state
                text = message if leaf.name in message else f"{leaf.name}: {message}"
                self.mark(capability, "Contact", text[:_MESSAGE])
        present = {leaf.name for leaf in places.leaves}
        for at in [at for at in self._contacts if at[0] == capability and at[1] not in present]:
            del self._contacts[at]

    def mark(self, capability: str, type: str, message: str) -> None:
        bucket = self.lanes[capability].bucket(self._now)
        if len(bucket.marks) < MARKS:
            bucket.marks.append(Mark(type=type, message=message, t=self._now))
        self._changed.add(capability)

    # recording

    def drain(self, most: int) -> bool:
        """Record up to `most` pending passes, writes and Events; return True if some are left."""
        for _ in range(most):
            if self._results:
                self._record_result(*self._results.popleft())
            elif self._pending:
                t, each = self._pending.popleft()
                if isinstance(each, PassEvent):
                    self._record_pass(t, each)
                else:
                    self._record_write(each, is_error=each.outcome == _WARNING)
            else:
                return False
        return bool(self._results or self._pending)

    def _record_pass(self, t: float, event: PassEvent) -> None:
        bucket = self.lanes[event.capability].bucket(t)
        if event.ending is not None:
            self._end(bucket, event)
        elif event.outcome is not None:
            self._results.extend((t, event, each) for each in event.outcome.results if each.result not in _UNSENT)
        elif event.braked is not None:
            self._hold(bucket, event)
        self._changed.add(event.capability)

    def _record_result(self, t: float, event: PassEvent, result: ActionResult) -> None:
        action = result.action
        write = RecordedWrite(
            t=t,
            capability=event.capability,
            key=event.key,
            verb=action.verb.value,
            object=action.object,
            reason=action.reason,
            message=result.message or action.facts.text(),
            outcome=result.result.value,
            diff=action.diff,
        )
        self._record_write(write, is_error=result.result in _BAD)

    def _end(self, bucket: Bucket, event: PassEvent) -> None:
        if event.ending not in _NO_PASS:
            bucket.passes += 1
        if event.ending is Ending.ERROR:
            bucket.errors += 1
        if event.ending is Ending.GONE:
            self._held.pop((event.capability, event.key), None)

    def _hold(self, bucket: Bucket, event: PassEvent) -> None:
        """Count a plan that is held now and was not before, or is another one."""
        subject, held = (event.capability, event.key), None if event.braked is None else event.braked.held
        if held is None:
            self._held.pop(subject, None)
        elif self._held.get(subject) != held.id:
            self._held[subject] = held.id
            bucket.brakes += 1
            text = f"Plan {held.id} of {event.key} is held: {counted(len(held.actions), 'action')}"
            self.mark(event.capability, "Brake", text[:_MESSAGE])

    def _record_write(self, write: RecordedWrite, *, is_error: bool) -> None:
        lane = self.lanes[write.capability]
        bucket = lane.bucket(write.t)
        bucket.count_write(write.reason)
        bucket.errors += is_error
        lane.keep(write)
        self._changed.add(write.capability)
        self._follow_eviction(write)

    def _follow_eviction(self, write: RecordedWrite) -> None:
        subject = _subject(write.object)
        if BUDGET in write.message and write.outcome != Result.DONE.value:
            self._refused.pop(subject, None)
            self._refused[subject] = write.t, write.message[:_MESSAGE]
            if len(self._refused) > REFUSALS:
                del self._refused[next(iter(self._refused))]
        elif write.verb == Verb.EVICT.value:
            self._refused.pop(subject, None)

    def entries(self) -> Mapping[str, list[Entry]]:
        """Return the present minute of the capabilities that changed since the last call."""
        now = self._now
        changed, self._changed = self._changed, set()
        for lane in self.lanes.values():
            lane.forget(now - SECONDS)
        return {
            name: [Entry(capability=name, t=now // STEP * STEP, **self.lanes[name].bucket(now).facts())]
            for name in sorted(changed)
        }

    # reading

    def explain(self, rollout: Rollout) -> Rollout:
        """Return a rollout whose pods in the way say which PodDisruptionBudget refused their last eviction."""
        blockers = tuple(self._explain_blocker(each, rollout.object) for each in rollout.blockers)
        return rollout if blockers == rollout.blockers else msgspec.structs.replace(rollout, blockers=blockers)

    def _explain_blocker(self, blocker: Blocker, of: ObjectRef) -> Blocker:
        pod = blocker.object
        t, refusal = self._refused.get(_subject(pod)) or self._refused.get(_subject(of)) or (0.0, "")
        if pod.kind != "Pod" or BUDGET in blocker.message or t < self._now - REFUSAL_SECONDS:
            return blocker
        return msgspec.structs.replace(
            blocker,
            message=f"{blocker.message}; the last eviction was refused: {refusal}",
            ways_out=(f"kubectl get poddisruptionbudgets --namespace {pod.namespace}", *blocker.ways_out),
        )

    def read(self, start: float, end: float, visible: Visible) -> dict[str, Any]:
        """Return the lanes in a span, in steps of whole minutes, at most `POINTS` of them."""
        self._settle()
        now = self._now
        start, end = max(start, now - SECONDS), min(end, now)
        minutes = max(1, -(-int(end - start) // (STEP * POINTS)))
        step = minutes * STEP
        lanes = {
            name: list(_points(lane, start, end, step))
            for name, lane in self.lanes.items()
            if visible is None or name in visible
        }
        return {"from": start, "to": end, "step": step, "began": self.began, "lanes": lanes}

    def writes(self, capability: str, start: float, end: float, offset: int) -> dict[str, Any]:
        """Return a page of the kept writes in a span, the latest first."""
        self._settle()
        lane = self.lanes[capability]
        found = sorted((each for each in lane.writes if start <= each.t <= end), key=lambda each: -each.t)
        page = [msgspec.Raw(each.encoded) for each in found[offset : offset + PAGE]]
        return {"total": len(found), "writes": page}

    def _settle(self) -> None:
        while self.drain(PENDING):
            pass
        for lane in self.lanes.values():
            lane.forget(self._now - SECONDS)


def _points(lane: Lane, start: float, end: float, step: int) -> Iterator[Point]:
    """Yield the points of a span that have anything; `step` is a multiple of a bucket's length."""
    found: dict[int, Bucket] = {}
    for number, bucket in sorted(lane.buckets.items()):
        if start - STEP < number * STEP <= end:
            found.setdefault(number * STEP // step, Bucket()).add(bucket)
    for number, bucket in found.items():
        yield Point(t=float(number * step), **bucket.facts())


def _approvals(root: Any) -> list[_Approval]:
    try:
        return msgspec.json.decode(annotations_of(root).get(APPROVALS, "[]"), type=list[_Approval])
    except msgspec.MsgspecError:
        return []


def _subject(ref: ObjectRef) -> _Subject:
    return ref.kind, ref.namespace, ref.name


def _host(identity: str) -> str:
    """Return the part of an identity that a restarted process has again."""
    return identity.rpartition("_")[0] or identity


class Series(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 1
    last_observed_time: str = ""


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of an events.k8s.io/v1 Event that are recorded."""

    metadata: PartialMetadata = PartialMetadata()
    regarding: dict[str, Any] = {}
    event_time: str | None = None
    type: str = ""
    reason: str = ""
    note: str = ""
    series: Series | None = None


def write_of(event: Event, capability: str, now: float) -> RecordedWrite:
    """Return an Event as a write whose diff nobody saw."""
    series, about = event.series, event.regarding
    at = parse_rfc3339_or_none((series.last_observed_time if series else "") or event.event_time or "")
    return RecordedWrite(
        t=now if at is None else min(now, at.timestamp()),
        capability=capability,
        key="",
        verb="Event",
        object=ObjectRef(
            api_version=str(about.get("apiVersion", "")),
            kind=str(about.get("kind", "")),
            namespace=str(about.get("namespace", "")),
            name=str(about.get("name", "")),
            uid=str(about.get("uid", "")),
        ),
        reason=event.reason,
        message=event.note,
        outcome=_WARNING if event.type == _WARNING else Result.DONE.value,
    )
