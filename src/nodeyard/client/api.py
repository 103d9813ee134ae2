"""Client: the verbs of the Kubernetes API on one cluster.

    client = Client(HttpTransport(load_config()))
    node = await client.get(NODES, "n1")
    async with client.watch(NODES.decoded_as(NodeView), resource_version=page.resource_version) as events: ...

Responses are decoded into the resource's type. Every write names its field manager and requests strict field
validation, so that a field the server does not know is an error instead of being dropped.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from nodeyard.client.bodies import ERROR_BYTES, LineFramer, TooLarge, read_all
from nodeyard.client.decoder import Bookmark, EventDecoder, Malformed, Page, WatchEvent, decode_as, decode_page
from nodeyard.client.discovery import Catalog, discover
from nodeyard.client.errors import ApiError, ClientError, Expired, TransportError, error_from_answer
from nodeyard.client.resources import PODS, Resource
from nodeyard.client.transport import IDLE_SECONDS, NOTHING, REQUEST_SECONDS, Request, Response, Stream, Transport
from nodeyard.kube.json import Json, Object

T = TypeVar("T")

Event: TypeAlias = WatchEvent[T] | Bookmark | Malformed
Observer: TypeAlias = Callable[[str, Resource[Any], int, float, str], None]
"""Called after each request with verb, resource, status code (0 without a response), seconds and error class."""

PAGE_SIZE: Final = 500

_encode = msgspec.json.Encoder().encode


class PatchForm(Enum):
    """The patch types of the API; the value is the content type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class DeleteOptions(msgspec.Struct, frozen=True):
    """Preconditions (uid, resource_version), propagation policy and grace period of a delete."""

    uid: str = ""
    resource_version: str = ""
    propagation: str = ""
    """Background, Foreground or Orphan; the server's default when empty."""
    grace_seconds: int | None = None
    dry_run: bool = False

    def body(self) -> Object:
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if self.uid or self.resource_version:
            pairs = (("uid", self.uid), ("resourceVersion", self.resource_version))
            body["preconditions"] = {key: value for key, value in pairs if value}
        if self.propagation:
            body["propagationPolicy"] = self.propagation
        if self.grace_seconds is not None:
            body["gracePeriodSeconds"] = self.grace_seconds
        if self.dry_run:
            body["dryRun"] = ["All"]
        return body


_PLAIN_DELETE = DeleteOptions()


class Client:
    def __init__(
        self,
        transport: Transport,
        *,
        field_manager: str = "nodeyard",
        flow: str = "",
        timeout: float = REQUEST_SECONDS,
        observe: Observer | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.transport = transport
        self.field_manager = field_manager
        self.flow = flow or field_manager
        self._timeout = timeout
        self._observe = observe
        self._on_warning = on_warning

    def managed_by(self, field_manager: str, flow: str = "") -> Client:
        """Return a client on the same transport with another field manager, which is also its flow if none is given."""
        return Client(
            self.transport,
            field_manager=field_manager,
            flow=flow,
            timeout=self._timeout,
            observe=self._observe,
            on_warning=self._on_warning,
        )

    async def close(self) -> None:
        await self.transport.close()

    # reading

    async def get(self, resource: Resource[T], name: str, namespace: str = "", *, subresource: str = "") -> T:
        response = await self._send("get", "GET", resource, resource.path(namespace, name, subresource))
        return decode_as(resource.view, response.body)

    async def pages(
        self, resource: Resource[T], namespace: str = "", *, labels: str = "", fields: str = "", size: int = PAGE_SIZE
    ) -> AsyncIterator[Page[T]]:
        """Yield the pages of one consistent list; raise Expired if the continue token expires."""
        query = _selectors(labels, fields)
        if size:
            query["limit"] = str(size)
        path = resource.path(namespace)
        while True:
            response = await self._send("list", "GET", resource, path, query=query)
            page = decode_page(resource.view, response.body)
            # Items of built-in kinds have neither in a list; objects of a watch do.
            for item in page.items:
                if isinstance(item, dict):
                    item.setdefault("apiVersion", resource.api_version)
                    item.setdefault("kind", resource.kind)
            yield page
            if not page.next:
                return
            query["continue"] = page.next

    async def list(
        self, resource: Resource[T], namespace: str = "", *, labels: str = "", fields: str = "", size: int = PAGE_SIZE
    ) -> Page[T]:
        """Return the whole list, read in pages, or in one request if the continue token expires."""
        try:
            pages = [page async for page in self.pages(resource, namespace, labels=labels, fields=fields, size=size)]
        except Expired:
            pages = [page async for page in self.pages(resource, namespace, labels=labels, fields=fields, size=0)]
        return Page(
            [item for page in pages for item in page.items],
            pages[-1].resource_version,
            "",
            tuple(item for page in pages for item in page.malformed),
        )

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        initial_events: bool = False,
        seconds: int = 0,
        idle_timeout: float = IDLE_SECONDS,
    ) -> AsyncIterator[AsyncIterator[Event[T]]]:
        """Watch from `resource_version` on, or with `initial_events` the current objects and then all changes.

        The iterator ends when the server ends the watch, which it does every few minutes and after `seconds`. An ERROR
        event raises its ApiError (Expired: relist); a broken stream raises TransportError. Start the next watch at the
        last resourceVersion received.
        """
        query = _selectors(labels, fields) | {"watch": "true", "allowWatchBookmarks": "true"}
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        if resource_version:
            query["resourceVersion"] = resource_version
        if seconds:
            query["timeoutSeconds"] = str(seconds)
        request = Request(
            "GET", resource.path(namespace), query=query, timeout=self._timeout, idle_timeout=idle_timeout
        )
        async with self.transport.stream(request) as stream:
            if stream.status != 200:
                raise await _error_of(stream, f"watch of {resource}")
            yield _events(stream, EventDecoder(resource.view), f"watch of {resource}")

    async def catalog(self) -> Catalog:
        """Run discovery and return every resource that the server serves."""
        return await discover(self.transport)

    async def server_version(self) -> Object:
        response = await self.transport.send(Request("GET", "/version", timeout=self._timeout))
        if response.status != 200:
            raise error_from_answer(response.status, response.headers, response.body)
        return decode_as(dict[str, Any], response.body)

    # writing

    async def create(self, resource: Resource[T], obj: Json, namespace: str = "", *, dry_run: bool = False) -> T:
        """Create the object. The namespace is taken from the object's metadata if it is not given."""
        namespace = namespace or _metadata(obj).get("namespace", "")
        response = await self._write("create", "POST", resource, resource.path(namespace), obj, dry_run=dry_run)
        return decode_as(resource.view, response.body)

    async def create_part(
        self, resource: Resource[Any], name: str, part: str, obj: Json, namespace: str = "", *, dry_run: bool = False
    ) -> Object:
        """POST to a subresource that is not the object itself: binding, eviction, token."""
        path = resource.path(namespace, name, part)
        response = await self._write("create", "POST", resource, path, obj, dry_run=dry_run)
        return decode_as(dict[str, Any], response.body)

    async def update(self, resource: Resource[T], obj: Json, *, subresource: str = "", dry_run: bool = False) -> T:
        """Replace the whole object. Pass a dict that was read from the server, with its resourceVersion."""
        metadata = _metadata(obj)
        path = resource.path(metadata.get("namespace", ""), metadata["name"], subresource)
        response = await self._write("update", "PUT", resource, path, obj, dry_run=dry_run)
        return decode_as(resource.view, response.body)

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Json,
        namespace: str = "",
        *,
        form: PatchForm = PatchForm.MERGE,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Patch the object. `force` takes over fields of other managers (APPLY only)."""
        path = resource.path(namespace, name, subresource)
        response = await self._write("patch", "PATCH", resource, path, patch, form.value, force=force, dry_run=dry_run)
        return decode_as(resource.view, response.body)

    async def apply(
        self,
        resource: Resource[T],
        obj: Object,
        *,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Apply these fields (server-side apply). Raises Conflict if another manager owns one and `force` is False."""
        metadata = _metadata(obj)
        return await self.patch(
            resource,
            metadata["name"],
            {"apiVersion": resource.api_version, "kind": resource.kind, **obj},
            metadata.get("namespace", ""),
            form=PatchForm.APPLY,
            subresource=subresource,
            force=force,
            dry_run=dry_run,
        )

    async def delete(
        self, resource: Resource[Any], name: str, namespace: str = "", options: DeleteOptions = _PLAIN_DELETE
    ) -> Object:
        """Delete the object. Returns it if finalizers or a grace period keep it, else a Status."""
        response = await self._send(
            "delete", "DELETE", resource, resource.path(namespace, name), body=_encode(options.body())
        )
        return decode_as(dict[str, Any], response.body)

    async def evict(
        self, name: str, namespace: str, *, grace_seconds: int | None = None, uid: str = "", dry_run: bool = False
    ) -> None:
        """Evict a pod, subject to its PodDisruptionBudgets.

        Raises TooManyRequests (`is_budget`) if a budget denies it, and NotFound if the pod is gone. The client does not
        retry an eviction: the drain decides when to retry.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": DeleteOptions(uid=uid, grace_seconds=grace_seconds).body(),
        }
        path = PODS.path(namespace, name, "eviction")
        await self._write("create", "POST", PODS, path, eviction, dry_run=dry_run, retry=False)

    # sending

    async def _write(
        self,
        verb: str,
        method: str,
        resource: Resource[Any],
        path: str,
        obj: Json,
        content_type: str = "application/json",
        *,
        force: bool = False,
        dry_run: bool = False,
        retry: bool = True,
    ) -> Response:
        query = {"fieldManager": self.field_manager, "fieldValidation": "Strict"}
        if force:
            query["force"] = "true"
        if dry_run:
            query["dryRun"] = "All"
        body = obj if isinstance(obj, bytes) else _encode(obj)
        return await self._send(
            verb, method, resource, path, query=query, body=body, content_type=content_type, retry=retry
        )

    async def _send(
        self,
        verb: str,
        method: str,
        resource: Resource[Any],
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        content_type: str = "application/json",
        retry: bool = True,
    ) -> Response:
        headers = {"Content-Type": content_type} if body else NOTHING
        request = Request(method, path, query, headers, body, self._timeout, retry, flow=self.flow)
        begun = time.perf_counter()
        status, waited = 0, 0.0
        error: ApiError | None = None
        try:
            response = await self.transport.send(request)
            status, waited = response.status, response.waited
            error = error_from_answer(status, response.headers, response.body) if status >= 300 else None
        finally:
            if self._observe is not None:
                reason = "" if error is None else type(error).__name__
                self._observe(verb, resource, status, time.perf_counter() - begun - waited, reason)
        if response.warnings and self._on_warning is not None:
            for warning in response.warnings:
                self._on_warning(_warning_text(warning))
        if error is not None:
            raise error
        return response


async def _error_of(stream: Stream, what: str) -> ClientError:
    try:
        body = await read_all(stream.chunks, ERROR_BYTES)
    except TooLarge as error:
        return TransportError(f"{what}: {error}", may_have_run=True)
    return error_from_answer(stream.status, stream.headers, body)


async def _events(stream: Stream, decoder: EventDecoder[T], what: str) -> AsyncIterator[Event[T]]:
    framer = LineFramer()
    decode = decoder.decode
    try:
        async for chunk in stream.chunks:
            for line in framer.feed(chunk):
                yield decode(line)
    except msgspec.DecodeError as error:
        raise TransportError(f"{what}: invalid event: {error}", may_have_run=True) from None
    except TooLarge as error:
        raise TransportError(f"{what}: {error}", may_have_run=True) from None
    if framer.rest:
        raise TransportError(f"{what}: the stream ended in the middle of an event", may_have_run=True)


def _selectors(labels: str, fields: str) -> dict[str, str]:
    query = {}
    if labels:
        query["labelSelector"] = labels
    if fields:
        query["fieldSelector"] = fields
    return query


def _metadata(obj: Json) -> Object:
    metadata: Object = obj["metadata"]
    return metadata


def _warning_text(header: str) -> str:
    """Return the text of a Warning header, `299 - "text"`, with inner quotes unescaped."""
    start, end = header.find('"'), header.rfind('"')
    return header[start + 1 : end].replace('\\"', '"').replace("\\\\", "\\") if end > start else header
