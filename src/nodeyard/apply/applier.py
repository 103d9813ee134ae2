"""The applier: carries a plan out, concurrently and bounded, and says of each action what became of it.

    plan ─▶ schedule (after) ─▶ workers ─▶ attempt: turn ─▶ hold? ─▶ send ─▶ verdict ─▶ result
                                                                        └─▶ no answer: settle by a GET

An action starts when all it comes after are done. Right before each request is sent, when it has waited for its turn on
the connections too, it is asked whether we may still write: a lost lease, a pause or a newer plan of the key holds
whatever has not been sent; what is in flight finishes. One failing object never stops the others. An action goes to the
cluster that its object names (`ways`). Where several are bound to one version of an object, each that comes after
another is bound to what that one made of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.apply.patience import Patience
from nodeyard.apply.pauses import Pauses
from nodeyard.apply.running import Running, log
from nodeyard.apply.sending import unguarded_list
from nodeyard.apply.verdicts import Again, Verdict, done, ended, verdict_of
from nodeyard.apply.ways import Elsewhere, Lookup, Manner, OnDeleted, OnWritten, Target, Way, Ways, nowhere
from nodeyard.client.api import Client
from nodeyard.client.errors import AlreadyExists, ApiError, NotFound, ServerError, TransportError, Withheld
from nodeyard.client.resources import Resource
from nodeyard.client.transport import Hold
from nodeyard.kube.identity import identity_of
from nodeyard.kube.json import Json
from nodeyard.plan.model import Action, Planned, Verb, Write
from nodeyard.plan.owned import fields_of
from nodeyard.process.clock import Clock

IN_FLIGHT: Final = 32


class Applier:
    """One for each capability; `in_flight` bounds all its keys together, on each server apart."""

    def __init__(
        self,
        client: Client,
        capability: str,
        lookup: Lookup,
        *,
        clock: Clock,
        in_flight: int = IN_FLIGHT,
        patience: Patience | None = None,
        random: Random | None = None,
        on_written: OnWritten = lambda _resource, _answer: None,
        on_deleted: OnDeleted = lambda _resource, _ref: None,
        elsewhere: Elsewhere = nowhere,
    ) -> None:
        """`client`, `lookup` and who is told are of our own server; `elsewhere` knows the further ones."""
        self._clock = clock
        self._in_flight = in_flight
        self._patience = patience or Patience()
        self._random = random or Random()
        manner = Manner(f"nodeyard-{capability}", clock, self._patience, self._random, in_flight)
        self._ways = Ways(Target(client, lookup, on_written, on_deleted), elsewhere, manner)
        self._running: dict[str, Running] = {}
        self._pauses = Pauses(clock)

    async def apply(
        self, planned: Planned, *, may_write: Callable[[], bool], seen_at: float = math.inf, dry_run: bool = False
    ) -> Outcome:
        """Carry the plan out. An older one of the same key is replaced: what it has in flight is waited for.

        `seen_at` is when what was planned for was looked at, by the monotonic clock: nothing goes to a further cluster
        that has been taken for another one since.
        """
        running = Running(planned, self._carry_out, may_write, self._clock, seen_at=seen_at, dry_run=dry_run)
        if dry_run:
            return await running.run(self._in_flight)
        key = planned.plan.key
        older = self._running.get(key)
        self._running[key] = running
        try:
            if older is not None:
                older.replace()
                await older.has_ended.wait()
            return await running.run(self._in_flight)
        finally:
            running.has_ended.set()
            if self._running.get(key) is running:
                del self._running[key]

    def cancel(self, key: str = "") -> None:
        """Send nothing more of this key's plan, or of any."""
        for each, running in self._running.items():
            if not key or each == key:
                running.replace()

    async def _carry_out(self, running: Running, action: Action) -> ActionResult:
        """Attempt after attempt, until there is a result or patience ends."""
        ref = action.object
        write = running.write(action)
        if unguarded := unguarded_list(action, write):
            return ended(action, Result.FAILED, f"not sent: a patch of {unguarded} needs a resourceVersion")
        if refused := self._pauses.of(action):
            return refused
        hold = functools.partial(self._hold, running, ref.cluster) if ref.cluster else running.hold
        failures = 0
        while True:
            way = self._ways.find(ref.cluster)
            if isinstance(way, str):
                return ended(action, Result.FAILED, way)
            resource = way.target.lookup(ref.api_version, ref.kind)
            if resource is None:
                return ended(action, Result.FAILED, f"the server does not serve {ref.kind} of {ref.api_version}")
            async with way.turn:
                if why := hold():
                    return ended(action, Result.HELD, why)
                if not failures and not running.is_dry:
                    _announce(action)
                verdict = await _attempt(way, resource, action, write, hold, running.is_dry, failures)
            if isinstance(verdict, ActionResult):
                return self._pauses.noted(verdict)
            failures += 1
            pause = self._patience.pause(failures, verdict.retry_after, self._random)
            if pause is None:
                return self._pauses.noted(ended(action, Result.FAILED, verdict.message, verdict.retry_after or 0.0))
            await running.wait(pause)

    def _hold(self, running: Running, cluster: str) -> str:
        return running.hold() or self._ways.swapped(cluster, running.seen_at)


async def _attempt(
    way: Way, resource: Resource[Any], action: Action, write: Write, hold: Hold, is_dry: bool, failures: int
) -> Verdict:
    try:
        if write.is_first and await _is_anothers(way, resource, action, write):
            return ended(action, Result.FAILED, "exists and is not ours: rename or delete it")
        answer = await way.sender.send(resource, action, write, hold=hold, dry_run=is_dry, failures=failures)
        verdict: Verdict = done(action, answer, version=_version(answer))
    except msgspec.ValidationError as error:
        # Done, but the answer does not decode into the type asked for; the watch sets such an object aside.
        return done(action, message=f"the answer does not decode: {error}")
    except Withheld as error:
        return ended(action, Result.HELD, str(error))
    except TransportError as error:
        verdict = Again(str(error))
        if error.may_have_run and not is_dry:
            verdict = await way.settler.settle(resource, action, write, str(error))
    except AlreadyExists as error:
        verdict = await way.settler.exists(resource, action, write, str(error))
    except ApiError as error:
        verdict = verdict_of(action, error)
        if isinstance(error, ServerError) and isinstance(verdict, Again) and not _is_repeatable(action, write):
            verdict = await way.settler.settle(resource, action, write, str(error))
    if isinstance(verdict, ActionResult) and verdict.result is Result.DONE and not is_dry:
        _tell(way.target, resource, action, verdict.answer)
    return verdict


async def _is_anothers(way: Way, resource: Resource[Any], action: Action, write: Write) -> bool:
    """Whether there is an object of this name that we have never applied."""
    try:
        found = await way.sender.read(resource, action.object)
    except NotFound:
        return False
    return not fields_of(found, way.sender.manager_of(write))


def _tell(target: Target, resource: Resource[Any], action: Action, answer: Json) -> None:
    if action.verb is Verb.DELETE and _is_gone(answer):
        target.on_deleted(resource, action.object)
    elif answer is not None and not _is_status(answer):
        target.on_written(resource, answer)


def _announce(action: Action) -> None:
    """Said as each is sent, not of all before the first: saying it takes time that the server would spend waiting."""
    log.info("acting", verb=action.verb.value, object=str(action.object), reason=action.reason,
             diff=action.diff)  # fmt: skip


def _is_repeatable(action: Action, write: Write) -> bool:
    """Whether sending it twice does no more than sending it once; the server may have done it before it failed."""
    return not write.json_patch or bool(write.resource_version)


def _version(answer: Json) -> str:
    return "" if answer is None or _is_status(answer) else identity_of(type(answer)).version(answer)


def _is_status(answer: Json) -> bool:
    return isinstance(answer, dict) and answer.get("kind") == "Status"


def _is_gone(answer: Json) -> bool:
    """Of a deletion: whether the object does not live on for finalizers or a grace period."""
    if answer is None or _is_status(answer):
        return True
    metadata = answer["metadata"]
    # A Namespace has a finalizer of its own in its spec, and lives on until it is empty.
    emptying = answer.get("kind") == "Namespace" and (answer.get("spec") or {}).get("finalizers")
    return not (metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds") or emptying)
