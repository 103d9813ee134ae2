"""Objects that reviews need and the cache does not have, read from the API server: by their metadata, and in time.

Reviews that want the same object at once share one request. What was there is good for all of them; that there was
nothing, or something of another uid, is good only for who came before the request was sent: an owner is often made
right before what it owns. Nothing is remembered, so a miss is confirmed each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from nodeyard.admission.kinds import Kinds
from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError, Forbidden, NotFound, TransportTimeout
from nodeyard.client.resources import Resource
from nodeyard.kube.objects import PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Cause, Found, LookedUp, Missing, Unreadable
from nodeyard.watch.partial import single_metadata_only

IN_FLIGHT: Final = 16
# Longer than any webhook may take: for requests that everybody has given up on.
REQUEST_SECONDS: Final = 30.0
MAX_NAME: Final = 253

_Subject: TypeAlias = tuple[str, str, str, str]
"""apiVersion, kind, namespace and name."""
_Read: TypeAlias = tuple[LookedUp, Resource[PartialObject] | None]
"""What was read, and through which resource."""


@dataclass(frozen=True)
class _Flight:
    """One request, and those who wait for it."""

    number: int
    """Of all that were sent; those who had to wait for a later one compare."""
    answer: asyncio.Task[_Read]


class Lookups:
    def __init__(
        self, client: Client, kinds: Kinds, remedy: str, on_found: Callable[[Resource[Any]], None] = lambda _kind: None
    ) -> None:
        """`remedy` says how a right is given; `on_found` is told the kind of each object that was there."""
        self._client = single_metadata_only(client)
        self._kinds = kinds
        self._remedy = remedy
        self._on_found = on_found
        self._turn = asyncio.Semaphore(IN_FLIGHT)
        self._flights: dict[_Subject, _Flight] = {}
        self._sent = 0

    async def find(
        self, refs: Iterable[ObjectRef], deadline: float, *, is_trial: bool = False
    ) -> dict[ObjectRef, LookedUp]:
        """What became of each, at the latest at `deadline` in the time of the event loop; never raises. For a trial, a
        dry run, `on_found` is not told."""
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return {ref: _late(ref) for ref in refs}
        wanted = {ref: asyncio.create_task(self._find(ref, is_trial), name=f"look up {ref.kind}") for ref in refs}
        try:
            await asyncio.wait(wanted.values(), timeout=left)
        finally:
            for task in wanted.values():
                task.cancel()
        return {ref: task.result() if _is_told(task) else _late(ref) for ref, task in wanted.items()}

    async def close(self) -> None:
        """What is still asked for nobody waits for any more."""
        tasks = [flight.answer for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._kinds.close()

    async def _find(self, ref: ObjectRef, is_trial: bool) -> LookedUp:
        if not _is_name(ref.name) or (ref.namespace and not _is_name(ref.namespace)):
            return Missing()
        came = self._sent
        while True:
            subject = (ref.api_version, ref.kind, ref.namespace, ref.name)
            flight = self._flights.get(subject) or self._fly(subject)
            answer, resource = await asyncio.shield(flight.answer)
            if flight.number > came or _is_meant(answer, ref):
                break
        if resource is not None and _is_meant(answer, ref) and not is_trial:
            self._on_found(resource)
        return answer

    def _fly(self, subject: _Subject) -> _Flight:
        self._sent += 1
        task = asyncio.create_task(self._land(subject), name=f"read {subject[1]}")
        flight = self._flights[subject] = _Flight(self._sent, task)
        return flight

    async def _land(self, subject: _Subject) -> _Read:
        try:
            return await self._read(*subject)
        finally:
            # Before anybody hears the answer: who comes now is not to be told it.
            del self._flights[subject]

    async def _read(self, api_version: str, kind: str, namespace: str, name: str) -> _Read:
        resource: Resource[PartialObject] | None = None
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                resource = await self._kinds.find(api_version, kind)
                answer = None if resource is None else await self._get(resource, namespace, name)
                if resource is not None and answer is None:
                    # It was served when the server was last asked.
                    resource = await self._kinds.find_anew(api_version, kind)
                    answer = None if resource is None else await self._get(resource, namespace, name)
        except (ClientError, msgspec.MsgspecError, LookupError, TimeoutError) as error:
            return self._unreadable(error, resource, kind), resource
        return answer or _not_served(api_version, kind), resource

    async def _get(self, resource: Resource[PartialObject], namespace: str, name: str) -> LookedUp | None:
        """None where it is the kind that the server does not have."""
        if resource.namespaced and not namespace:
            return Missing()
        try:
            async with self._turn:
                return Found(await self._client.get(resource, name, namespace))
        except NotFound as error:
            return Missing() if error.details.name == name else None

    def _unreadable(self, error: Exception, resource: Resource[Any] | None, kind: str) -> Unreadable:
        what = kind if resource is None else str(resource)
        if isinstance(error, Forbidden):
            said = str(error).partition(" is forbidden: ")[2] or str(error)
            return Unreadable(f"may not get {what}: {said}; {self._remedy}", Cause.FORBIDDEN)
        if isinstance(error, TimeoutError | TransportTimeout):
            return Unreadable(f"cannot get {what}: {error or f'no answer in {REQUEST_SECONDS:g} s'}", Cause.TIMEOUT)
        return Unreadable(f"cannot get {what}: {error or type(error).__name__}", Cause.ERROR)


def _is_name(text: str) -> bool:
    """Whether an object could have it: it is one segment of a path."""
    return 0 < len(text) <= MAX_NAME and text not in (".", "..") and not {"/", "%"} & set(text)


def _is_meant(answer: LookedUp, ref: ObjectRef) -> bool:
    return isinstance(answer, Found) and ref.uid in ("", answer.object.metadata.uid)


def _is_told(task: asyncio.Task[LookedUp]) -> bool:
    return task.done() and not task.cancelled()


def _late(ref: ObjectRef) -> Unreadable:
    return Unreadable(f"cannot get {ref}: the API server did not answer in time", Cause.TIMEOUT)


def _not_served(api_version: str, kind: str) -> Unreadable:
    return Unreadable(f"the server does not serve {kind} in {api_version}", Cause.NOT_SERVED)
