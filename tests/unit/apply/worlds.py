"""An in-process cluster under virtual time, a faulty transport, and an applier that uses both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec

from nodeyard.apiserver.server import Server
from nodeyard.apply.applier import Applier
from nodeyard.client.api import Client
from nodeyard.client.errors import TransportError, Withheld
from nodeyard.client.flow_control import FlowControl
from nodeyard.client.resources import CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS, SECRETS, Resource, untyped
from nodeyard.client.transport import Request, Response
from nodeyard.plan.model import ObjectRef, Write
from nodeyard.process.clock import VirtualClock, settle
from nodeyard.sim.embedded import connect

BUDGETS = untyped("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
POLICIES = untyped(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS = untyped(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
_KNOWN: dict[tuple[str, str], Resource[Any]] = {
    (each.api_version, each.kind): each for each in (CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS, SECRETS)
}


def lookup(api_version: str, kind: str) -> Resource[Any] | None:
    return _KNOWN.get((api_version, kind))


def status(code: int, reason: str = "", message: str = "trouble", retry_after: int = 0) -> Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return Response(code, {"retry-after": str(retry_after)} if retry_after else {}, msgspec.json.encode(body))


class NoAnswer(Exception):
    """A lost answer; the request itself may have arrived."""

    def __init__(self, *, after_sending: bool, may_have_run: bool = True) -> None:
        self.after_sending = after_sending
        self.may_have_run = may_have_run


class FaultyTransport:
    """Transport that counts requests and injects faults: `trouble` has faults by method, in order.

    `after` has actions of other writers by method, in order; each runs after the server has executed a request. A
    request waits for `turn` before it is sent, and for `gate` after it. `flow_control` is that of HttpTransport.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.flow_control = FlowControl()
        self.flows: list[str] = []
        self.stream, self.close = inner.stream, inner.close
        self.watch_error: dict[str, list[Response | NoAnswer]] = {}
        self.before: Callable[[str, str], None] | None = None
        self.after: dict[str, list[Callable[[], Awaitable[None]]]] = {}
        self.sent: list[tuple[str, str, Any]] = []
        self.timeouts: dict[str, list[float]] = {}
        self.turn: asyncio.Event | None = None
        self.gate: asyncio.Event | None = None
        self.in_flight = self.most_in_flight = 0

    def count(self, method: str) -> int:
        return sum(each[0] == method for each in self.sent)

    async def send(self, request: Request) -> Response:
        self.flows.append(request.flow)
        await self.flow_control.acquire(request.flow)
        try:
            return await self._send(request)
        finally:
            self.flow_control.release()

    async def _send(self, request: Request) -> Response:
        method, path = request.method, request.path
        if self.turn is not None:
            await self.turn.wait()
        if request.hold is not None and (why := request.hold()):
            raise Withheld(why)
        self.sent.append((method, path, msgspec.json.decode(request.body or b"null")))
        self.timeouts.setdefault(method, []).append(request.timeout)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.before is not None:
                self.before(method, path)
            if self.gate is not None:
                await self.gate.wait()
            return await self._answer(request)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: Request) -> Response:
        request = msgspec.structs.replace(request, hold=None)
        waiting = self.watch_error.get(request.method)
        trouble = waiting.pop(0) if waiting else None
        if isinstance(trouble, Response):
            return trouble
        if isinstance(trouble, NoAnswer):
            if trouble.after_sending:
                await self._inner.send(request)
            raise TransportError("the connection was cut", may_have_run=trouble.may_have_run)
        response: Response = await self._inner.send(request)
        if others := self.after.get(request.method):
            await others.pop(0)()
        return response


class World:
    """The cluster with an applier. `client` is another writer; the applier sends through `transport`."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.server = Server(self.clock, seed=1)
        self.client = connect(self.server)
        self.transport = FaultyTransport(self.client.transport)
        self.written: list[Any] = []
        self.deleted: list[ObjectRef] = []
        self.applier = self.applier_with()

    def applier_with(self, **options: Any) -> Applier:
        return Applier(
            Client(self.transport),
            "tests",
            lookup,
            clock=self.clock,
            random=Random(1),
            on_written=lambda _resource, answer: self.written.append(answer),
            on_deleted=lambda _resource, ref: self.deleted.append(ref),
            **options,
        )

    async def apply(self, planned: Any, **options: Any) -> Any:
        """Apply to the end; pauses cost no real time."""
        running = asyncio.ensure_future(self.applier.apply(planned, **{"may_write": lambda: True, **options}))
        return await self.finish(running)

    async def finish(self, running: asyncio.Future[Any]) -> Any:
        await settle()
        while not running.done():
            await self.clock.advance(1)
        return await running

    async def node(self, name: str, **more: Any) -> Any:
        return await self.client.create(NODES, {"metadata": {"name": name}, **more})

    async def config(self, name: str, **data: str) -> Any:
        return await self.client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "default"}, "data": data})

    async def pod(self, name: str, **labels: str) -> Any:
        spec = {"containers": [{"name": "app", "image": "app"}], "nodeName": "n1"}
        await self.client.create(
            PODS, {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}
        )
        # A pending pod can always be evicted; budgets protect running ones.
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return await self.client.patch(PODS, name, {"status": ready}, "default", subresource="status")

    async def budget(self, name: str, allowed: int, **labels: str) -> None:
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
        made = await self.client.create(BUDGETS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        told = {
            "observedGeneration": made["metadata"].get("generation", 1),
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
        }
        await self.client.patch(BUDGETS, name, {"status": told}, "default", subresource="status")

    async def policy(self, name: str, expression: str, message: str) -> None:
        """Deny ConfigMaps for which the expression is false."""
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
        spec = {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": expression, "message": message}],
        }
        await self.client.create(POLICIES, {"metadata": {"name": name}, "spec": spec})
        binding = {"policyName": name, "validationActions": ["Deny"]}
        await self.client.create(BINDINGS, {"metadata": {"name": f"{name}-all"}, "spec": binding})


def patch(body: Any = None, **more: Any) -> Write:
    return Write(body={"metadata": {"labels": {"ours": "1"}}} if body is None else body, **more)
