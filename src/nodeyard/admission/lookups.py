"""Reads objects that a review needs and no cache has from the API server: metadata only, within a deadline.

Concurrent lookups of the same object share one request. A found object serves all of them. A miss, or an object with
another uid, serves only callers that came before the request was sent: an owner is often created right before its
dependents. Nothing is cached, so every miss is confirmed by the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError, Forbidden, NotFound, TransportTimeout
from nodeyard.client.metadata_only import single_metadata_only
from nodeyard.client.resources import Resource
from nodeyard.client.rest_mapper import RESTMapper
from nodeyard.kube.objects import PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Cause, Found, LookedUp, Missing, Unreadable

IN_FLIGHT: Final = 16
"""Half of what the transport sends at once: a burst of reviews must not occupy every slot while the server is slow."""
# Longer than any webhook timeout; ends requests that no review waits for any more.
REQUEST_SECONDS: Final = 30.0
MAX_NAME: Final = 253

_ObjectKey: TypeAlias = tuple[str, str, str, str]
"""apiVersion, kind, namespace and name."""
_Read: TypeAlias = tuple[LookedUp, Resource[Any] | None]
"""The answer, and the resource it was read through."""


@dataclass(frozen=True)
class _Request:
    """One request that concurrent lookups share."""

    number: int
    """Sequence number. A caller accepts a miss only of a request with a higher number than it saw on arrival."""
    answer: asyncio.Task[_Read]


class Lookups:
    def __init__(
        self,
        client: Client,
        mapper: RESTMapper,
        remedy: str,
        on_found: Callable[[Resource[Any]], None] = lambda _kind: None,
    ) -> None:
        """`remedy` tells users how to grant a missing right; `on_found` gets the resource of each found object."""
        self._transport = client.transport
        self._client = single_metadata_only(client.managed_by(client.field_manager, "nodeyard/admission"))
        self._mapper = mapper
        self._remedy = remedy
        self._on_found = on_found
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._requests: dict[_ObjectKey, _Request] = {}
        self._sent = 0

    async def find(
        self, refs: Iterable[ObjectRef], deadline: float, *, is_trial: bool = False
    ) -> dict[ObjectRef, LookedUp]:
        """Look up objects until `deadline` (event loop time); never raises. A dry run (`is_trial`) skips `on_found`."""
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return {ref: _timed_out(ref) for ref in refs}
        wanted = {ref: asyncio.create_task(self._find(ref, is_trial), name=f"look up {ref.kind}") for ref in refs}
        try:
            await asyncio.wait(wanted.values(), timeout=left)
        finally:
            for task in wanted.values():
                task.cancel()
        return {ref: task.result() if _is_done(task) else _timed_out(ref) for ref, task in wanted.items()}

    async def close(self) -> None:
        """Cancel the requests in flight."""
        tasks = [request.answer for request in self._requests.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._mapper.close()

    async def _find(self, ref: ObjectRef, is_trial: bool) -> LookedUp:
        if not _is_name(ref.name) or (ref.namespace and not _is_name(ref.namespace)):
            return Missing()
        sent_before = self._sent
        while True:
            key = (ref.api_version, ref.kind, ref.namespace, ref.name)
            request = self._requests.get(key) or self._start(key)
            answer, resource = await asyncio.shield(request.answer)
            if request.number > sent_before or _is_match(answer, ref):
                break
        if resource is not None and _is_match(answer, ref) and not is_trial:
            self._on_found(resource)
        return answer

    def _start(self, key: _ObjectKey) -> _Request:
        self._sent += 1
        task = asyncio.create_task(self._finish(key), name=f"read {key[1]}")
        request = self._requests[key] = _Request(self._sent, task)
        return request

    async def _finish(self, key: _ObjectKey) -> _Read:
        try:
            return await self._read(*key)
        finally:
            # Removed before any waiter sees the answer: a later caller must not share it.
            del self._requests[key]

    async def _read(self, api_version: str, kind: str, namespace: str, name: str) -> _Read:
        resource: Resource[Any] | None = None
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                resource = await self._mapper.look_up(api_version, kind, self._transport)
                answer = None if resource is None else await self._get(resource, namespace, name)
                if resource is not None and answer is None:
                    # Cached discovery was stale.
                    resource = await self._mapper.look_up_again(api_version, kind, self._transport)
                    answer = None if resource is None else await self._get(resource, namespace, name)
        except (ClientError, msgspec.MsgspecError, LookupError, TimeoutError) as error:
            return self._unreadable(error, resource, kind), resource
        return answer or _not_served(api_version, kind), resource

    async def _get(self, resource: Resource[Any], namespace: str, name: str) -> LookedUp | None:
        """Get an object; None if the server does not serve the kind."""
        if resource.namespaced and not namespace:
            return Missing()
        try:
            async with self._slots:
                return Found(await self._client.get(resource.decoded_as(PartialObject), name, namespace))
        except NotFound as error:
            return Missing() if error.details.name == name else None

    def _unreadable(self, error: Exception, resource: Resource[Any] | None, kind: str) -> Unreadable:
        target = kind if resource is None else str(resource)
        if isinstance(error, Forbidden):
            detail = str(error).partition(" is forbidden: ")[2] or str(error)
            return Unreadable(f"may not get {target}: {detail}; {self._remedy}", Cause.FORBIDDEN)
        if isinstance(error, TimeoutError | TransportTimeout):
            return Unreadable(f"cannot get {target}: {error or f'no answer in {REQUEST_SECONDS:g} s'}", Cause.TIMEOUT)
        return Unreadable(f"cannot get {target}: {error or type(error).__name__}", Cause.ERROR)


def _is_name(text: str) -> bool:
    """Return whether a text can be an object name, that is one path segment."""
    return 0 < len(text) <= MAX_NAME and text not in (".", "..") and not {"/", "%"} & set(text)


def _is_match(answer: LookedUp, ref: ObjectRef) -> bool:
    return isinstance(answer, Found) and ref.uid in ("", answer.object.metadata.uid)


def _is_done(task: asyncio.Task[LookedUp]) -> bool:
    return task.done() and not task.cancelled()


def _timed_out(ref: ObjectRef) -> Unreadable:
    return Unreadable(f"cannot get {ref}: the API server did not answer in time", Cause.TIMEOUT)


def _not_served(api_version: str, kind: str) -> Unreadable:
    return Unreadable(f"the server does not serve {kind} in {api_version}", Cause.NOT_SERVED)
