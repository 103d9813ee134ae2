"""Runs a rehearsal: opens the twin, lets it settle, makes the change, and records until it has converged.

    twin ─▶ settle ─▶ change, events, faults ─▶ converged, or stuck, or out of time ─▶ Timeline

It has converged when the operator and the simulation have nothing to do, no plan is held, no object of the operator
waits, no pod is left over that ran before, and nothing has changed for a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from nodeyard.app import files
from nodeyard.app.approvals import NotHeld, approve
from nodeyard.app.dry_planner import dry_planning
from nodeyard.bundle.model import ClusterState
from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError, NotFound
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.layout import counted
from nodeyard.rehearsal.assertions import Assertion
from nodeyard.rehearsal.faults import Fault, Faults
from nodeyard.rehearsal.recorder import BUDGET, Recorder
from nodeyard.rehearsal.timeline import Check, HeldPlan, Timeline
from nodeyard.rehearsal.twin import Twin, TwinOptions, open_twin, with_kubeconfig
from nodeyard.rehearsal.virtual_loop import LoopClock

QUIET_SECONDS: Final = 60.0
STUCK_SECONDS: Final = 1800.0
"""After so long without any change, nothing more is expected to happen."""
DAY: Final = 86_400.0
BASELINE_SECONDS: Final = 3600.0
POLL_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 1.0
NAMED: Final = 5
FACTS: Final = {
    "converged": "1 if it converged, else 0",
    "seconds": "seconds from the change until the last change of anything",
    "evicted": "pods evicted by a budget-respecting eviction",
    "moved": "pods that left their node for any reason",
    "unplaced": "pods at the end that fit no node",
    "homeless": "pods that left and had no replacement on a node at the end, although they have a controller",
    "nodes_created": "nodes that joined",
    "nodes_deleted": "nodes that were deleted",
    "ready": "the lowest share of nodes that were ready",
    "held": "plans held for approval at the end",
    "refused": "objects at the end that the operator could not change as desired",
    "free_cpu": "the lowest number of free CPUs on ready, uncordoned nodes of any zone and class",
    "free_memory": "the same in GiB of memory",
    "actions": "writes of the operator's plans",
}
"""The names of facts in assertions, and what they mean."""
EVICTED: Final = "Evicted"


class RehearsalError(Exception):
    """A rehearsal that cannot be run; the text is one line."""


@dataclass(frozen=True)
class Event:
    """A change that is made at a time of the rehearsal."""

    at: float
    apply: Sequence[tuple[str, Object]] = ()
    delete: Sequence[tuple[str, Object]] = ()


@dataclass(frozen=True)
class Rehearsal:
    """A change, the cluster that it is rehearsed on, and the time that it may take."""

    options: TwinOptions
    start: datetime
    source: str
    host: ClusterState | None = None
    leaves: Mapping[str, ClusterState] = field(default_factory=dict)
    setup: Sequence[tuple[str, Object]] = ()
    """Manifests that are there before the change."""
    events: Sequence[Event] = ()
    faults: Sequence[Fault] = ()
    assertions: Sequence[Assertion] = ()
    at_most: float = DAY
    runs_on: bool = False
    """Run to the end although it has converged."""
    approves: bool = False
    notes: Sequence[str] = ()


async def rehearse(rehearsal: Rehearsal) -> Timeline:
    """Run a rehearsal; the running loop must be a VirtualTimeLoop."""
    clock = LoopClock(rehearsal.start)
    recorder = Recorder(clock)
    async with open_twin(rehearsal.host, rehearsal.leaves, rehearsal.options, recorder, clock) as twin:
        return await _Run(rehearsal, twin, recorder, clock).run()


class _Run:
    def __init__(self, rehearsal: Rehearsal, twin: Twin, recorder: Recorder, clock: LoopClock) -> None:
        self._rehearsal, self._twin, self._recorder, self._clock = rehearsal, twin, recorder, clock
        self._faults = Faults(twin, recorder)
        self._known: set[str] = set()
        """Reasons not to be converged that were there before the change."""

    async def run(self) -> Timeline:
        await self._apply(self._rehearsal.setup)
        await self._settle()
        for fault in self._rehearsal.faults:
            self._check(fault)
        self._known = set(await self._open_ends())
        self._recorder.begin()
        begun = self._clock.monotonic()
        steps = [asyncio.create_task(self._at(begun, at, act)) for at, act in self._schedule()]
        converged = await self._wait(begun, steps)
        for step in steps:
            step.cancel()
        await asyncio.gather(*steps, return_exceptions=True)
        reasons = [] if converged else await self._reasons(begun)
        return self._timeline(converged, reasons, begun)

    async def _settle(self) -> None:
        """Let the twin come to rest: what the operator does anyway is not part of the change."""
        end = self._clock.monotonic() + BASELINE_SECONDS
        await self._clock.sleep(QUIET_SECONDS)
        while self._clock.monotonic() < end and not self._is_quiet(QUIET_SECONDS):
            await self._clock.sleep(POLL_SECONDS)

    def _check(self, fault: Fault) -> None:
        try:
            self._faults.check(fault)
        except LookupError as error:
            raise RehearsalError(str(error)) from None

    # what happens

    def _schedule(self) -> list[tuple[float, Callable[[], Coroutine[Any, Any, None]]]]:
        found: list[tuple[float, Callable[[], Coroutine[Any, Any, None]]]] = []
        for event in self._rehearsal.events:
            found.append((event.at, lambda event=event: self._make(event)))  # type: ignore[misc]
        for fault in self._rehearsal.faults:
            found.append((fault.at, lambda fault=fault: self._faults.begin(fault)))  # type: ignore[misc]
            if fault.duration is not None:
                end = fault.at + fault.duration
                found.append((end, lambda fault=fault: self._faults.end(fault)))  # type: ignore[misc]
        return found

    async def _at(self, begun: float, at: float, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await self._clock.sleep(begun + at - self._clock.monotonic())
        await act()

    async def _make(self, event: Event) -> None:
        for where, _ in (*event.apply, *event.delete):
            self._recorder.note("applied" if (where, _) in event.apply else "deleted", where)
        await self._apply(event.apply)
        for where, obj in event.delete:
            await self._delete(where, obj)

    async def _apply(self, objects: Sequence[tuple[str, Object]]) -> None:
        """Apply manifests. Namespaces and kinds that the operator creates for others may take a moment."""
        pending = list(objects)
        for _ in range(60):
            pending, error = await self._try_apply(pending)
            if not pending:
                return
            await self._clock.sleep(RETRY_SECONDS)
        raise RehearsalError(error)

    async def _try_apply(self, objects: Sequence[tuple[str, Object]]) -> tuple[list[tuple[str, Object]], str]:
        failed, text = [], ""
        for each in objects:
            try:
                await files.send(self._twin.host.client, [(each[0], with_kubeconfig(each[1]))], dry_run=False)
            except files.FileError as error:
                failed.append(each)
                text = text or str(error)
        return failed, text

    async def _delete(self, where: str, obj: Object) -> None:
        client = self._twin.host.client
        known = (await client.catalog()).by_kind(obj["apiVersion"], obj["kind"])
        if known is None:
            raise RehearsalError(f"{where}: the twin does not serve {obj['kind']} of {obj['apiVersion']}")
        try:
            await client.delete(known.resource, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
        except NotFound:
            raise RehearsalError(f"{where}: there is no such object to delete") from None

    # the end

    async def _wait(self, begun: float, steps: Sequence[asyncio.Task[None]]) -> bool:
        end = begun + self._rehearsal.at_most
        last = begun + max((at for at, _ in self._schedule()), default=0.0)
        is_converged = False
        while (now := self._clock.monotonic()) < end:
            await self._clock.sleep(min(POLL_SECONDS, end - now))
            for step in steps:
                if step.done():
                    step.result()
            if self._clock.monotonic() <= last or not self._is_quiet(QUIET_SECONDS):
                continue
            if self._rehearsal.approves and await self._approve():
                continue
            if self._rehearsal.runs_on:
                continue
            is_converged = not await self._new_open_ends()
            if is_converged or self._silence >= STUCK_SECONDS:
                return is_converged
        return self._is_quiet(0.0) and not await self._new_open_ends()

    def _is_quiet(self, seconds: float) -> bool:
        return (self._twin.is_idle and self._silence >= seconds) or self._silence >= STUCK_SECONDS

    @property
    def _silence(self) -> float:
        return self._clock.monotonic() - self._recorder.last_change

    async def _approve(self) -> bool:
        """Approve the held plans, as `nodeyard approve` does; return whether there was one."""
        held, client = self._recorder.open_held, self._twin.host.client
        if not held:
            return False
        connect = self._twin.connect
        async with dry_planning(client, self._twin.capabilities, self._clock, lambda _capability: connect) as planner:
            for id in dict.fromkeys(each.id for each in held):
                try:
                    await approve(client, planner, id, "rehearsed", self._clock)
                except (NotHeld, ClientError) as error:
                    raise RehearsalError(f"plan {id} cannot be approved: {error}") from None
                self._recorder.note("approved", f"plan {id}")
        return True

    async def _new_open_ends(self) -> list[str]:
        return [each for each in await self._open_ends() if each not in self._known]

    async def _open_ends(self) -> list[str]:
        """Return what is left to happen, or cannot."""
        found = [f"plan {each.id} of {each.capability} is held: {each.text}" for each in self._held]
        found += [f"{each.object}: {each.text} ({each.reason})" for each in self._recorder.open_refusals]
        found += [f"pod {pod} fits no node" for pod in self._recorder.pending]
        for capability in self._twin.capabilities:
            for kind in capability.kinds:
                found += await _unready(self._twin.host.client, kind.resource.decoded_as(dict))
        return found

    @property
    def _held(self) -> list[HeldPlan]:
        return self._recorder.open_held

    async def _reasons(self, begun: float) -> list[str]:
        found = await self._new_open_ends()
        now = self._recorder.now
        recent = [each for each in self._recorder.refusals if each.source == BUDGET]
        found += [f"budget {each.object}: {each.text}" for each in recent if now - (each.until or now) < QUIET_SECONDS]
        if not self._is_quiet(0.0):
            found.append(f"something was still going on after {_hours(self._clock.monotonic() - begun)}")
        elif not self._twin.is_idle:
            found.append("machines or pods are awaited that did not come")
        return found or ["nothing changed any more, and nothing says why"]

    # the result

    def _timeline(self, converged: bool, reasons: list[str], begun: float) -> Timeline:
        recorder, rehearsal = self._recorder, self._rehearsal
        seconds = round((recorder.last_change if converged else self._clock.monotonic()) - begun, 3)
        facts = self._facts(converged, seconds)
        notes = [*rehearsal.notes]
        if errors := self._twin.errors:
            notes.append(f"the simulation reported {counted(len(errors), 'error')}: {'; '.join(errors[:NAMED])}")
        return Timeline(
            converged=converged,
            seconds=seconds,
            reasons=reasons,
            profile=rehearsal.options.profile.description,
            seed=rehearsal.options.seed,
            start=format_rfc3339(rehearsal.start),
            source=rehearsal.source,
            steps=sorted(recorder.steps.values(), key=lambda step: (step.begin, step.capability, step.key)),
            changes=recorder.changes,
            moves=recorder.moves,
            held=recorder.held,
            refusals=recorder.refusals,
            capacity=recorder.capacity.series,
            facts=facts,
            checks=[Check(text=each.text, holds=each.holds(facts)) for each in rehearsal.assertions],
            notes=notes,
        )

    def _facts(self, converged: bool, seconds: float) -> dict[str, float]:
        recorder = self._recorder
        whats = [each.what for each in recorder.changes]
        lowest = [each.lowest for each in recorder.capacity.series]
        return {
            "converged": float(converged),
            "seconds": seconds,
            "evicted": float(sum(each.reason == EVICTED for each in recorder.moves)),
            "moved": float(len(recorder.moves)),
            "unplaced": float(len(recorder.pending)),
            "homeless": float(sum(each.has_owner and each.placed is None for each in recorder.moves)),
            "nodes_created": float(whats.count("node created")),
            "nodes_deleted": float(whats.count("node deleted")),
            "ready": round(recorder.lowest_ready, 6),
            "held": float(len(recorder.open_held)),
            "refused": float(len(recorder.open_refusals)),
            "free_cpu": min((point[2] for point in lowest), default=0.0),
            "free_memory": min((min(p[3] for p in each.points) for each in recorder.capacity.series), default=0.0),
            "actions": float(sum(step.count for step in recorder.steps.values())),
        }


async def _unready(client: Client, resource: Any) -> list[str]:
    """Return the objects of a kind whose condition Ready is not True, with their messages."""
    found = []
    for obj in (await client.list(resource)).items:
        conditions = (obj.get("status") or {}).get("conditions") or ()
        ready = next((each for each in conditions if each.get("type") == "Ready"), None)
        if ready is not None and ready.get("status") != "True":
            metadata = obj["metadata"]
            name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
            found.append(f"{resource.kind} {name} is not ready: {ready.get('message') or ready.get('reason')}")
    return found


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h"
