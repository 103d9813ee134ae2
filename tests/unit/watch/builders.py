"""Builders of objects and events, and a transport with scripted responses."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from nodeyard.client.errors import Cause, Details, Status, TransportTimeout, error_from_status
from nodeyard.client.resources import NODES
from nodeyard.client.transport import Response, Stream
from nodeyard.kube.objects import Node, ObjectMeta

NODE_VIEW = NODES.decoded_as(Node)


def node(name, version, uid="", **labels):
    """Build a node as in a cache; its uid defaults to its name."""
    return Node(metadata=ObjectMeta(name=name, uid=uid or name, resource_version=str(version), labels=labels))


def wire(obj):
    """Build an event as the server sends it."""
    return msgspec.to_builtins(obj)


def change(kind, obj):
    return {"type": kind, "object": wire(obj)}


def added(*args, **labels):
    return change("ADDED", node(*args, **labels))


def modified(*args, **labels):
    return change("MODIFIED", node(*args, **labels))


def deleted(*args, **labels):
    return change("DELETED", node(*args, **labels))


def bookmark(version, *, is_end=False):
    annotations = {"k8s.io/initial-events-end": "true"} if is_end else {}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), "annotations": annotations}}}


def failure(code, reason=""):
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason, "message": "as asked"}}


def refusal(code, retry_after=None, cause=""):
    details = Details(causes=(Cause(reason=cause),)) if cause else None
    status = Status(kind="Status", code=code, message="as asked", details=details)
    return error_from_status(status, retry_after=retry_after)


def page(version, *objects):
    return {"metadata": {"resourceVersion": str(version)}, "items": [wire(obj) for obj in objects]}


SILENCE = object()
"""A stream that stays open without data until the idle timeout."""


class Hold:
    """A stream that stays open until the test ends it, and can send more events."""

    def __init__(self):
        self.events = asyncio.Queue()

    def say(self, *events):
        for event in events:
            self.events.put_nowait(event)

    def end(self):
        """End the stream like the server."""
        self.events.put_nowait(None)


@dataclass
class Asked:
    is_watch: bool
    query: dict
    at: float
    headers: dict = field(default_factory=dict)


class Script:
    """Transport that answers each list and watch with the next response of the script; then watches stay open."""

    def __init__(self, clock, *answers):
        self.clock = clock
        self.answers = list(answers)
        self.asked = []

    @property
    def watches(self):
        return [asked for asked in self.asked if asked.is_watch]

    async def send(self, request):
        self.asked.append(Asked(False, dict(request.query), self.clock.monotonic(), dict(request.headers)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Response) else Response(200, {}, msgspec.json.encode(answer))

    @asynccontextmanager
    async def stream(self, request):
        self.asked.append(Asked(True, dict(request.query), self.clock.monotonic(), dict(request.headers)))
        steps = self.answers.pop(0) if self.answers else [Hold()]
        if isinstance(steps, Exception):
            raise steps
        yield Stream(200, {}, self._chunks(steps, request.idle_timeout))

    async def _chunks(self, steps, idle_timeout):
        for step in steps:
            if isinstance(step, Exception):
                raise step
            if step is SILENCE:
                await self.clock.sleep(idle_timeout)
                raise TransportTimeout("silent", may_have_run=True)
            if isinstance(step, Hold):
                while (event := await step.events.get()) is not None:
                    yield line(event)
                continue
            yield line(step)

    async def close(self):
        pass


def line(event):
    return event if isinstance(event, bytes) else msgspec.json.encode(event) + b"\n"


NO_KINDS = {"kind": "APIGroupDiscoveryList", "items": []}
"""Response to one of the two discovery requests, of a server without kinds."""
