"""The status writer: writes last in a pass, only if the status differs, and tolerates other writers of the same object.

The patch is the difference between the wanted status and the cached one. After a conflict or a lost response the object
is read and compared again, so that nothing is written twice and no newer value is overwritten.

If someone else's CRD is installed, a status field of ours fails strict validation, and would be pruned without it. The
server names such fields in its error. They are then left out of writes and comparisons, so that nothing is sent for
their sake alone. Every ten minutes they are sent again along with a write that is due anyway, since the CRD may have
been replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeAlias

import msgspec

from nodeyard.apply.action_graph import NOT_ALLOWED
from nodeyard.apply.outcome import Result, is_conflict
from nodeyard.apply.retry import RETRY_POLICY
from nodeyard.apply.writers import Lookup, OnWritten, answer_seconds, single_attempt
from nodeyard.client.api import Client
from nodeyard.client.errors import AdmissionDenied, ClientError, Invalid, NotFound, Withheld
from nodeyard.client.resources import Resource
from nodeyard.client.transport import Hold
from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.kube.patch import merge_diff
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

UNKNOWN_FIELDS_RETRY_SECONDS: Final = 600.0

Path: TypeAlias = tuple[str, ...]

_STRICT = "strict decoding error"
_PATCH = "patch"
_UNKNOWN = re.compile(r'unknown field "status\.([^"]+)"')
_INDEX = re.compile(r"\[\d+\]")

log = get_logger("status")

REMEMBERED: Final = 10_000
"""Number of digests kept, the latest first; a dropped one costs one write."""


class StatusWrite(msgspec.Struct, frozen=True, kw_only=True):
    """The wanted status of an object; written last, and only if it differs."""

    object: ObjectRef
    status: Object
    resource_version: str = ""
    has_subresource: bool = True
    """False for a kind without a status subresource (kosmos Cluster): written through the object itself."""


class StatusResult(msgspec.Struct, frozen=True, kw_only=True):
    object: ObjectRef
    result: Result
    message: str = ""
    requests: int = 0
    """Number of patches sent; 0 if the status was already as wanted."""


class StatusWriter:
    def __init__(
        self,
        client: Client,
        capability: str,
        lookup: Lookup,
        *,
        clock: Clock,
        random: Random | None = None,
        on_written: OnWritten = lambda _resource, _answer: None,
    ) -> None:
        self._client = client.managed_by(f"nodeyard-{capability}", f"nodeyard-{capability}/status")
        self._reader = self._single_attempt_client()
        self._lookup = lookup
        self._clock = clock
        self._random = random or Random()
        self._on_written = on_written
        # Digests of the wanted and the stored status of objects where the two differ: without them, a field that the
        # server defaults would be removed in every pass. The statuses themselves are not kept, to bound memory.
        self._answered: dict[ObjectRef, bytes] = {}
        self._unknown_fields = UnknownFields(clock)
        self._without_subresource: set[str] = set()
        """Kinds found to have no status subresource; their status is written through the object itself."""

    async def write(
        self, writes: Sequence[StatusWrite], shown: Callable[[ObjectRef], Any | None], *, may_write: Callable[[], bool]
    ) -> tuple[StatusResult, ...]:
        """Write each status. `shown` returns the cached object, dict or struct; None counts as an empty status."""
        pending = [self._write(each, shown(each.object), may_write) for each in writes]
        # The usual single write runs without the cost of a task.
        return (await pending[0],) if len(pending) == 1 else tuple(await asyncio.gather(*pending))

    async def _write(self, wanted: StatusWrite, cached: Any | None, may_write: Callable[[], bool]) -> StatusResult:
        ref = wanted.object
        if ref.cluster:
            message = f"status is written on the host cluster only, not on cluster {ref.cluster}"
            return StatusResult(object=ref, result=Result.FAILED, message=message)
        status = self._unknown_fields.trim(ref, wanted.status)
        shown = _status_of(cached)
        difference = _difference(cached, shown, status)
        if difference is None or (ref in self._answered and self._answered[ref] == _digest(status, shown)):
            return StatusResult(object=ref, result=Result.DONE)
        resource = self._lookup(ref.api_version, ref.kind)
        if resource is None:
            return StatusResult(
                object=ref, result=Result.FAILED, message=f"the server does not serve {ref.kind} of {ref.api_version}"
            )
        attempt = _Attempt(wanted, status, difference, lambda: "" if may_write() else NOT_ALLOWED)
        if self._unknown_fields.is_retry_due(ref):
            attempt.status, attempt.difference = wanted.status, _difference(cached, shown, wanted.status)
        while True:
            if hold := attempt.hold():
                return attempt.result(Result.HELD, hold)
            result = await self._try(resource, attempt)
            if isinstance(result, StatusResult):
                return result
            await self._clock.sleep(result)

    async def _try(self, resource: Resource[Any], attempt: _Attempt) -> StatusResult | float:
        """Send the patch once. Returns the result, or the seconds to wait before the next attempt."""
        try:
            if attempt.requests:
                await self._refresh(resource, attempt)
            if attempt.difference is not None:
                attempt.requests += 1
                await self._send(resource, attempt)
            return attempt.result(Result.DONE)
        except NotFound:
            lacks_subresource = await self._lacks_subresource(resource, attempt)
            return 0.0 if lacks_subresource else attempt.result(Result.DONE, "the object no longer exists")
        except msgspec.ValidationError as error:
            return attempt.result(Result.DONE, f"the response does not decode: {error}")
        except Withheld as error:
            attempt.requests -= 1
            return attempt.result(Result.HELD, str(error))
        except ClientError as error:
            if self._drops_fields(attempt, error):
                return 0.0
            pause = self._pause(attempt, error)
            return attempt.result(_result_of(error), str(error)) if pause is None else pause

    async def _refresh(self, resource: Resource[Any], attempt: _Attempt) -> None:
        ref = attempt.wanted.object
        found = await self._reader.get(resource.decoded_as(dict), ref.name, ref.namespace)
        if _has_other_uid(ref, found):
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
        part = "status" if wanted.has_subresource and resource.path() not in self._without_subresource else ""
        client = self._single_attempt_client(attempt.hold)
        answer = await client.patch(resource, ref.name, patch, ref.namespace, subresource=part)
        self._remember(ref, attempt.status, answer)
        if attempt.status is wanted.status:
            self._unknown_fields.forget(ref)
        self._on_written(resource, answer)

    def _remember(self, ref: ObjectRef, wanted: Object, answer: Any) -> None:
        """Remember the stored status if it differs from the wanted one."""
        self._answered.pop(ref, None)
        shown = _status_of(answer)
        if _difference(answer, shown, wanted) is None:
            return
        if len(self._answered) >= REMEMBERED:
            del self._answered[next(iter(self._answered))]
        self._answered[ref] = _digest(wanted, shown)

    def _single_attempt_client(self, hold: Hold | None = None) -> Client:
        return single_attempt(self._client, self._client.field_manager, answer_seconds(), hold)

    async def _lacks_subresource(self, resource: Resource[Any], attempt: _Attempt) -> bool:
        """After a 404, return True if the object exists and only its status subresource is missing."""
        ref = attempt.wanted.object
        if not attempt.wanted.has_subresource or resource.path() in self._without_subresource:
            return False
        try:
            found = await self._reader.get(resource.decoded_as(dict), ref.name, ref.namespace)
        except ClientError:
            return False
        if _has_other_uid(ref, found):
            # The uid differs: the object was deleted, which says nothing about the kind.
            return False
        self._without_subresource.add(resource.path())
        return True

    def _drops_fields(self, attempt: _Attempt, error: ClientError) -> bool:
        """Return True if fields that were sent are dropped because the installed CRD lacks them."""
        ref = attempt.wanted.object
        if not self._unknown_fields.learn(ref, error):
            return False
        left = self._unknown_fields.trim(ref, attempt.status)
        is_less = not json_equal(left, attempt.status)
        attempt.status = left
        return is_less

    def _pause(self, attempt: _Attempt, error: ClientError) -> float | None:
        attempt.failures += 1
        has_conflict = is_conflict(error)
        if not error.is_transient and not has_conflict:
            return None
        pause = RETRY_POLICY.pause(attempt.failures, error.retry_after, self._random)
        # After a conflict the object is read again at once; there is nothing to wait for.
        return 0.0 if pause is not None and has_conflict else pause


class _Attempt:
    """The state of one status write across its attempts."""

    def __init__(self, wanted: StatusWrite, status: Object, difference: Json, hold: Hold) -> None:
        self.wanted = wanted
        self.hold = hold
        self.status = status
        """The wanted status without fields that the installed CRD lacks."""
        self.difference = difference
        self.resource_version = wanted.resource_version
        self.requests = 0
        self.failures = 0

    def result(self, result: Result, message: str = "") -> StatusResult:
        return StatusResult(object=self.wanted.object, result=result, message=message, requests=self.requests)


def _digest(wanted: Object, shown: Object) -> bytes:
    encoded = msgspec.json.encode((wanted, shown), order="deterministic")
    return hashlib.blake2b(encoded, digest_size=16).digest()


def _has_other_uid(ref: ObjectRef, found: Object) -> bool:
    return bool(ref.uid) and found["metadata"].get("uid") != ref.uid


def _result_of(error: ClientError) -> Result:
    if isinstance(error, AdmissionDenied):
        return Result.DENIED
    return Result.CONFLICT if is_conflict(error) else Result.FAILED


def _difference(cached: Any | None, shown: Object, wanted: Object) -> Json | None:
    """Return the merge patch from the shown to the wanted status; None if they are equal."""
    # A struct does not distinguish an empty value from a missing one. A patch only for that would be sent in every
    # pass. If a patch is sent anyway, it includes empty values, so that a printer column shows 0.
    if cached is None or isinstance(cached, dict):
        return merge_diff(shown, wanted)
    if _is_alike(shown, wanted):
        return None
    return merge_diff({name: value for name, value in shown.items() if not _is_empty(value)}, wanted)


def _status_of(obj: Any | None) -> Object:
    if obj is None or isinstance(obj, dict):
        return (obj or {}).get("status") or {}
    status: Object = msgspec.to_builtins(obj.status) if obj.status is not None else {}
    return status


def _is_alike(one: Json, other: Json) -> bool:
    """Compare two values; a member that is empty in one and missing in the other counts as equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_is_alike_member(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_is_alike, one, other))
    return json_equal(one, other)


def _is_alike_member(one: Json, other: Json) -> bool:
    return one is other or _is_alike(one, other) or (_is_empty(one) and _is_empty(other))


def _is_empty(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or value is False or value in (0, "", [], ())


class _Known(msgspec.Struct, frozen=True):
    paths: frozenset[Path]
    since: float


class UnknownFields:
    """The unknown fields by kind, for all its objects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kinds: dict[tuple[str, str], _Known] = {}

    def trim(self, ref: ObjectRef, status: Object) -> Object:
        """Return the status without the fields that its CRD is known to lack."""
        known = self._kinds.get((ref.api_version, ref.kind))
        for path in known.paths if known is not None else ():
            status = _without(status, path)
        return status

    def is_retry_due(self, ref: ObjectRef) -> bool:
        """Return True if the unknown fields should be sent again."""
        known = self._kinds.get((ref.api_version, ref.kind))
        return known is not None and self._clock.monotonic() - known.since >= UNKNOWN_FIELDS_RETRY_SECONDS

    def learn(self, ref: ObjectRef, error: ClientError) -> bool:
        """Record the unknown status fields that the error names. Returns False if it names none."""
        # The message quotes the patch, including our own texts, and ends with the error.
        causes = error.causes if isinstance(error, Invalid) else ()
        message = next((each.message for each in causes if each.field == _PATCH), "")
        found = _UNKNOWN.findall(message.rpartition(_STRICT)[2]) if _STRICT in message else []
        if not found:
            return False
        paths = frozenset(tuple(_INDEX.sub("", each).split(".")) for each in found)
        before = self._kinds.get((ref.api_version, ref.kind))
        known = before.paths if before is not None else frozenset()
        self._kinds[ref.api_version, ref.kind] = _Known(known | paths, self._clock.monotonic())
        if paths - known:
            log.warning("status fields dropped", kind=ref.kind, fields=sorted(found),
                        reason="the installed CRD lacks them: install the CRD of this version")  # fmt: skip
        return True

    def forget(self, ref: ObjectRef) -> None:
        """The server has accepted the whole status: no field is unknown."""
        self._kinds.pop((ref.api_version, ref.kind), None)


def _without(value: Json, path: Path) -> Json:
    if isinstance(value, list):
        return [_without(item, path) for item in value]
    name, *rest = path
    if not isinstance(value, dict) or name not in value:
        return value
    if rest:
        return {**value, name: _without(value[name], tuple(rest))}
    return {key: member for key, member in value.items() if key != name}
