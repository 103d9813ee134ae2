"""Records what a client reads of a cluster, for a bundle.

    recorded = RecordedCluster(redactor)
    client = Client(RecordingTransport(live, recorded))

The planners of the operator run on such a client: the bundle then has what they decide from, whatever that is. Lists
and objects are kept as bytes, and redacted when all is read: only then is known what is a name. Watches never send an
event, so that the state stays that of the lists. Only reads are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from nodeyard.bundle.model import GVR, ClusterState, Objects, Omission, ServedResource, identify
from nodeyard.bundle.paths import ReadPath, parse_path
from nodeyard.bundle.redaction import Redactor
from nodeyard.client.decoder import decode_as
from nodeyard.client.errors import TransportError
from nodeyard.client.transport import Request, Response, Stream, Transport
from nodeyard.kube.json import Object

NO_STREAMING_LIST: Final = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,'
    b'"message":"lists are not streamed from a recording"}'
)

METADATA_ONLY: Final = "PartialObjectMetadata"

_encode = msgspec.json.Encoder().encode


class _Answer(msgspec.Struct):
    """A list or an object."""

    kind: str = ""
    items: list[msgspec.Raw] | None = None


class RecordedCluster:
    """The responses that one cluster has given."""

    def __init__(self, name: str, redactor: Redactor) -> None:
        self.name = name
        self.redactor = redactor
        self.resources: tuple[ServedResource, ...] = ()
        self.version: Object = {}
        self.error = ""
        self.denied: dict[str, str] = {}
        """Why something could not be read."""
        self._objects: dict[GVR, dict[tuple[str, str], bytes]] = {}
        """The objects as the server sent them."""
        self._kinds: dict[GVR, str] = {}

    @property
    def omissions(self) -> Iterator[Omission]:
        return (Omission(what, reason, self.name) for what, reason in self.denied.items())

    def learn_names(self) -> None:
        """Let the redactor meet every name before the first text: equal words shall be kept or hashed alike."""
        for gvr, found in self._objects.items():
            for raw in found.values():
                self._redact(gvr, raw)

    def state(self) -> ClusterState:
        """Return what was read, redacted: now that all names are known."""
        objects = {gvr: Objects([self._redact(gvr, raw) for raw in found.values()]) for gvr, found in self.objects()}
        return ClusterState(self.name, self.resources, objects, self.version, self.error)

    def objects(self) -> Iterator[tuple[GVR, dict[tuple[str, str], bytes]]]:
        """Return the objects as they were read, by namespace and name."""
        return iter(self._objects.items())

    def kind(self, gvr: GVR) -> str:
        """Return the kind of a resource: as objects had it, or as discovery says where only metadata was read."""
        found = self._kinds.get(gvr)
        return found or next((each.kind for each in self.resources if each.gvr == gvr), METADATA_ONLY)

    def record(self, path: ReadPath, status: int, body: bytes) -> None:
        """Record the response to a read."""
        if status in (401, 403):
            self.denied[str(path)] = self.redactor.text(_message(body))
        if status != 200:
            return
        found = self._objects.setdefault(path.gvr, {})
        answer = decode_as(_Answer, body)
        self.denied.pop(str(path), None)
        is_whole = not answer.kind.startswith(METADATA_ONLY)
        if is_whole:
            self._kinds[path.gvr] = answer.kind if path.name else answer.kind.removesuffix("List")
        for raw in (body,) if path.name else answer.items or ():
            metadata = identify(raw)
            labels = metadata.labels or {}
            self.redactor.learn(metadata.name, metadata.namespace, *labels.values())
            self.redactor.learn(*(part for key in labels for part in key.split("/")))
            if is_whole or (metadata.namespace, metadata.name) not in found:
                found[metadata.namespace, metadata.name] = bytes(raw)

    def _redact(self, gvr: GVR, raw: bytes) -> bytes:
        identity = {"apiVersion": gvr.api_version, "kind": self.kind(gvr)}
        return _encode(
            self.redactor.redact(identity["kind"], {**identity, **decode_as(dict[str, Any], raw), **identity})
        )


class RecordingTransport:
    """A transport that reads from another one, and records the answers."""

    def __init__(self, inner: Transport, recorded: RecordedCluster) -> None:
        self._inner = inner
        self._recorded = recorded

    async def send(self, request: Request) -> Response:
        if request.method != "GET":
            raise TransportError(f"{request.method} {request.path}: a recording only reads", may_have_run=False)
        response = await self._inner.send(request)
        path = parse_path(request.path)
        if path is not None:
            self._recorded.record(path, response.status, response.body)
        elif request.path == "/version" and response.status == 200:
            self._recorded.version = self._recorded.redactor.redact("", decode_as(dict[str, Any], response.body))
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        if request.query.get("sendInitialEvents"):
            yield Stream(400, {}, _once(NO_STREAMING_LIST))
        else:
            yield Stream(200, {}, silence())

    async def close(self) -> None:
        await self._inner.close()


async def silence() -> AsyncIterator[bytes]:
    """Yield nothing, and never end: the watch of a cluster that does not change."""
    await asyncio.Event().wait()
    yield b""


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _message(body: bytes) -> str:
    try:
        return str(decode_as(dict[str, Any], body).get("message", ""))
    except msgspec.MsgspecError:
        return "refused"
