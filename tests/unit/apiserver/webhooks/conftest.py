"""A webhook over TLS, and the parts of a server that call it."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trustme
from aiohttp import web

from nodeyard.apiserver.admission.attributes import Attributes, Operation
from nodeyard.apiserver.admission.namespaces import Namespaces
from nodeyard.apiserver.admission.webhooks.client import WebhookClient
from nodeyard.apiserver.admission.webhooks.configurations import MUTATING, VALIDATING, Configurations
from nodeyard.apiserver.admission.webhooks.dispatcher import Dispatcher
from nodeyard.apiserver.admission.webhooks.endpoints import Services
from nodeyard.apiserver.admission.webhooks.mutating import MutatingWebhooks
from nodeyard.apiserver.admission.webhooks.validating import ValidatingWebhooks
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import GroupResource, Resource, Strategy, Version
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import WorkerThread
from nodeyard.schema.model import Schema

AdmissionRequest = dict[str, Any]
Answer = Callable[[AdmissionRequest], Awaitable[web.StreamResponse | dict[str, Any]]]

CONFIGMAPS = Resource(
    "", "ConfigMap", "configmaps", "configmap", True, {"v1": Version("v1", Schema())}, "v1", Strategy()
)


class WebhookServer:
    """Webhook with a response for each path; records requests."""

    def __init__(self) -> None:
        self.authority = trustme.CA()
        self.asked: list[tuple[str, dict[str, str], AdmissionRequest]] = []
        self.connections: set[Any] = set()
        self._answers: dict[str, Answer] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        self.port = await self._listen(self.authority, "127.0.0.1", "hook.ns.svc")
        self.port_of_stranger = await self._listen(trustme.CA(), "127.0.0.1")
        self.port_of_other_name = await self._listen(self.authority, "example.com")
        self.port_without_tls = await self._listen(None)

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _listen(self, authority: trustme.CA | None, *names: str) -> int:
        context = None
        if authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(*names).configure_cert(context)
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(self._runner, listener, ssl_context=context).start()  # type: ignore[arg-type]
        return int(listener.getsockname()[1])

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        review = await request.json()
        self.connections.add(request.transport)
        self.asked.append((str(request.rel_url), {k.lower(): v for k, v in request.headers.items()}, review))
        answer = await self._answers[request.path](review)
        if isinstance(answer, web.StreamResponse):
            return answer
        response = {"uid": review["request"]["uid"], "allowed": True, **answer}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    def on(self, path: str, answer: dict[str, Any] | web.StreamResponse | Answer) -> str:
        """Set the answer at this path; return its URL."""

        async def fixed(review: AdmissionRequest) -> web.StreamResponse | dict[str, Any]:
            assert not callable(answer)
            return answer

        self._answers[path] = answer if callable(answer) and not isinstance(answer, web.StreamResponse) else fixed
        return f"https://127.0.0.1:{self.port}{path}"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.cert_pem.bytes()).decode()


class Cluster:
    """The parts of a server that admission needs."""

    def __init__(self, server: WebhookServer) -> None:
        self.server = server
        self.store = Store()
        self.services = Services(self.store)
        self.client = WebhookClient(self.services)
        self.put(GroupResource("", "namespaces"), {"metadata": {"name": "ns", "labels": {"team": "a"}}})
        dispatcher = Dispatcher(Namespaces(self.store), self.client, lambda attributes, version: {})
        self.mutating = MutatingWebhooks(Configurations(self.store, MUTATING, self.no_expressions), dispatcher)
        self.validating = ValidatingWebhooks(Configurations(self.store, VALIDATING, self.no_expressions), dispatcher)

    @staticmethod
    def no_expressions(source: str) -> Any:
        raise AssertionError("these webhooks have no conditions")

    def put(self, resource: GroupResource, obj: dict[str, Any]) -> None:
        self.store.commit(resource, obj, {}, expect=None)

    def hook(self, *, url: str = "", is_mutating: bool = False, **more: Any) -> None:
        """Register one webhook in a configuration of its own; `at` names both."""
        name = more.pop("at", "h.example.com")
        config = more.pop("clientConfig", {"url": url})
        entry = {
            "name": name,
            "clientConfig": {"caBundle": self.server.ca_bundle, **config},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 5,
            **more,
        }
        self.put(MUTATING if is_mutating else VALIDATING, {"metadata": {"name": name}, "webhooks": [entry]})

    def write(self, operation: Operation = "CREATE", **more: Any) -> Attributes:
        obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "ns"},
            "data": {"a": "b"},
        }
        fields: dict[str, Any] = {
            "operation": operation,
            "resource": CONFIGMAPS,
            "version": "v1",
            "subresource": "",
            "namespace": "ns",
            "name": "c",
            "object": None if operation == "DELETE" else obj,
            "old": None if operation == "CREATE" else obj,
            "user": User("alice", ("dev",), uid="a-1", extra={"scopes": ("x",)}),
            "work": WorkerThread().work(),
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        }
        return Attributes(**{**fields, **more})

    async def admit(self, **more: Any) -> Attributes:
        attributes = self.write(**more)
        await self.mutating.mutate(attributes)
        await self.validating.validate(attributes)
        return attributes

    async def refusal(self, **more: Any) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.admit(**more)
        return caught.value


@pytest.fixture
async def server() -> AsyncIterator[WebhookServer]:
    made = WebhookServer()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def cluster(server: WebhookServer) -> AsyncIterator[Cluster]:
    made = Cluster(server)
    yield made
    await made.client.close()
