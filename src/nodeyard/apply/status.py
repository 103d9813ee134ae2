"""Writes status: last, only where it differs, and in peace with others who write the same object.

The patch is what differs between the status wanted and the one the cache shows. After a conflict or a lost answer the
object is read and compared anew, so that nothing is written twice and nothing old is written over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Protocol

import msgspec

from nodeyard.apply.lacking import Lacking
from nodeyard.apply.outcome import Result
from nodeyard.apply.patience import Patience, asked_pause, is_trouble
from nodeyard.apply.running import NOT_ALLOWED
from nodeyard.apply.sending import answer_seconds, once
from nodeyard.apply.verdicts import has_moved_on
from nodeyard.apply.ways import Lookup, OnWritten
from nodeyard.client.api import Client
from nodeyard.client.errors import AdmissionDenied, ClientError, NotFound, Withheld
from nodeyard.client.resources import Resource
from nodeyard.client.transport import Hold
from nodeyard.kube.json import Json, Object
from nodeyard.kube.patch import merge_diff
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock

IN_FLIGHT: Final = 8
REMEMBERED: Final = 10_000
"""Objects whose last answer is known; forgetting costs one write."""


class Wanted(Protocol):
    """A status to be written; `runtime.capability.StatusWrite` is one."""

    @property
    def object(self) -> ObjectRef: ...

    @property
    def status(self) -> Object: ...

    @property
    def resource_version(self) -> str: ...

    @property
    def has_subresource(self) -> bool: ...


class StatusResult(msgspec.Struct, frozen=True, kw_only=True):
    object: ObjectRef
    result: Result
    message: str = ""
    requests: int = 0
    """How many patches it took; none where the status was as wanted."""


class StatusWriter:
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
    ) -> None:
        self._client = client.managed_by(f"nodeyard-{capability}")
        self._reader = self._client_for_once()
        self._lookup = lookup
        self._clock = clock
        self._turn = asyncio.Semaphore(in_flight)
        self._patience = patience or Patience()
        self._random = random or Random()
        self._on_written = on_written
        # What the server made of what we wanted. A field that it defaults would else be taken away for ever.
        self._answered: dict[ObjectRef, tuple[Object, Object]] = {}
        self._lacking = Lacking(clock)
        self._whole: set[str] = set()
        """Kinds that turned out to have no status subresource: written through the object itself."""

    async def write(
        self, writes: Sequence[Wanted], shown: Callable[[ObjectRef], Any | None], *, may_write: Callable[[], bool]
    ) -> tuple[StatusResult, ...]:
        """Make each status so. `shown` is the object as the cache has it, dict or struct; None is compared as empty."""
        pending = [self._write(each, shown(each.object), may_write) for each in writes]
        # One alone, as is usual, needs no task of its own.
        return (await pending[0],) if len(pending) == 1 else tuple(await asyncio.gather(*pending))

    async def _write(self, wanted: Wanted, cached: Any | None, may_write: Callable[[], bool]) -> StatusResult:
        ref = wanted.object
        if ref.cluster:
            message = f"status is written on our own server only, not in cluster {ref.cluster}"
            return StatusResult(object=ref, result=Result.FAILED, message=message)
        status = self._lacking.trimmed(ref, wanted.status)
        shown = _status_of(cached)
        difference = _difference(cached, shown, status)
        if difference is None or self._answered.get(ref) == (status, shown):
            return StatusResult(object=ref, result=Result.DONE)
        resource = self._lookup(ref.api_version, ref.kind)
        if resource is None:
            return StatusResult(object=ref, result=Result.FAILED, message=f"{ref.kind} is not served")
        attempt = _Attempt(wanted, status, difference, lambda: "" if may_write() else NOT_ALLOWED)
        if self._lacking.is_worth_offering(ref):
            attempt.status, attempt.difference = wanted.status, _difference(cached, shown, wanted.status)
        while True:
            async with self._turn:
                if hold := attempt.hold():
                    return attempt.ended(Result.HELD, hold)
                ended = await self._try(resource, attempt)
            if isinstance(ended, StatusResult):
                return ended
            await self._clock.sleep(ended)

    async def _try(self, resource: Resource[Any], attempt: _Attempt) -> StatusResult | float:
        """Send it once; how it ended, or how long to wait before the next time."""
        try:
            if attempt.requests:
                await self._compare_again(resource, attempt)
            if attempt.difference is not None:
                attempt.requests += 1
                await self._send(resource, attempt)
            return attempt.ended(Result.DONE)
        except NotFound:
            is_whole = await self._lacks_subresource(resource, attempt)
            return 0.0 if is_whole else attempt.ended(Result.DONE, "the object is gone")
        except msgspec.ValidationError as error:
            return attempt.ended(Result.DONE, f"the answer does not decode: {error}")
        except Withheld as error:
            attempt.requests -= 1
            return attempt.ended(Result.HELD, str(error))
        except ClientError as error:
            if self._leaves_out(attempt, error):
                return 0.0
            pause = self._pause(attempt, error)
            return attempt.ended(_result_of(error), str(error)) if pause is None else pause

    async def _compare_again(self, resource: Resource[Any], attempt: _Attempt) -> None:
        ref = attempt.wanted.object
        found = await self._reader.get(resource.decoded_as(dict), ref.name, ref.namespace)
        if _is_another(ref, found):
            attempt.difference = None
            return
        attempt.difference = merge_diff(found.get("status") or {}, attempt.status)
        attempt.resource_version = found["metadata"]["resourceVersion"]

    async def _send(self, resource: Resource[Any], attempt: _Attempt) -> None:
        ref, wanted = attempt.wanted.object, attempt.wanted
        patch: Object = {"status": attempt.difference}
        pairs = (("uid", ref.uid), ("resourceVersion", attempt.resource_version))
        if metadata := {name: value for name, value in pairs if value}:
            patch["metadata"] = metadata
        part = "status" if wanted.has_subresource and resource.path() not in self._whole else ""
        client = self._client_for_once(attempt.hold)
        answer = await client.patch(resource, ref.name, patch, ref.namespace, subresource=part)
        if len(self._answered) >= REMEMBERED:
            self._answered.clear()
        self._answered[ref] = attempt.status, _status_of(answer)
        if attempt.status is wanted.status:
            self._lacking.taken(ref)
        self._on_written(resource, answer)

    def _client_for_once(self, hold: Hold | None = None) -> Client:
        return once(self._client, self._client.field_manager, answer_seconds(), hold)

    async def _lacks_subresource(self, resource: Resource[Any], attempt: _Attempt) -> bool:
        """After a 404: whether the object is there, and only its status has no place of its own."""
        ref = attempt.wanted.object
        if not attempt.wanted.has_subresource or resource.path() in self._whole:
            return False
        try:
            found = await self._reader.get(resource.decoded_as(dict), ref.name, ref.namespace)
        except ClientError:
            return False
        if _is_another(ref, found):
            # The one meant was gone: that says nothing about its kind.
            return False
        self._whole.add(resource.path())
        return True

    def _leaves_out(self, attempt: _Attempt, error: ClientError) -> bool:
        """Whether fields are left out that were sent, because the server does not have them."""
        ref = attempt.wanted.object
        if not self._lacking.learn(ref, error):
            return False
        left = self._lacking.trimmed(ref, attempt.status)
        is_less = left != attempt.status
        attempt.status = left
        return is_less

    def _pause(self, attempt: _Attempt, error: ClientError) -> float | None:
        attempt.failures += 1
        is_conflict = has_moved_on(error)
        if not is_trouble(error) and not is_conflict:
            return None
        pause = self._patience.pause(attempt.failures, asked_pause(error), self._random)
        # After a conflict there is nothing to wait for: the object is read again at once.
        return 0.0 if pause is not None and is_conflict else pause


class _Attempt:
    """One status on its way."""

    def __init__(self, wanted: Wanted, status: Object, difference: Json, hold: Hold) -> None:
        self.wanted = wanted
        self.hold = hold
        self.status = status
        """What is wanted, of what the server has fields for."""
        self.difference = difference
        self.resource_version = wanted.resource_version
        self.requests = 0
        self.failures = 0

    def ended(self, result: Result, message: str = "") -> StatusResult:
        return StatusResult(object=self.wanted.object, result=result, message=message, requests=self.requests)


def _is_another(ref: ObjectRef, found: Object) -> bool:
    return bool(ref.uid) and found["metadata"].get("uid") != ref.uid


def _result_of(error: ClientError) -> Result:
    if isinstance(error, AdmissionDenied):
        return Result.DENIED
    return Result.CONFLICT if has_moved_on(error) else Result.FAILED


def _difference(cached: Any | None, shown: Object, wanted: Object) -> Json | None:
    """The merge patch that is needed where this status is shown, None where nothing is."""
    # A struct does not tell an empty value from none; a patch for the sake of that alone would be sent for ever.
    is_struct = cached is not None and not isinstance(cached, dict)
    return None if is_struct and _is_alike(shown, wanted) else merge_diff(shown, wanted)


def _status_of(obj: Any | None) -> Object:
    if obj is None or isinstance(obj, dict):
        return (obj or {}).get("status") or {}
    status: Object = msgspec.to_builtins(obj.status) if obj.status is not None else {}
    return status


def _is_alike(one: Json, other: Json) -> bool:
    """Whether two values are the same but for members that are empty in one and not there in the other."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_is_alike_member(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_is_alike, one, other))
    return bool(one == other)


def _is_alike_member(one: Json, other: Json) -> bool:
    return one is other or _is_alike(one, other) or (_is_empty(one) and _is_empty(other))


def _is_empty(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or value is False or value in (0, "", [], ())
