"""The API server: `handle(request)` over any transport.

    parse ─▶ authenticate, authorize ─▶ route ─▶ read or write ─▶ answer ─▶ audit

One `Server` is one cluster; a process may have several. `start` runs the controllers. `call` makes requests with the
rights of the server itself, for the controllers and for programs that embed the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from nodeyard.apiserver import errors, request_body, responses
from nodeyard.apiserver.access import AccessControl
from nodeyard.apiserver.admission.attributes import Plugin
from nodeyard.apiserver.admission.chain import Chain
from nodeyard.apiserver.audit import AuditSink, Trail, audit_event
from nodeyard.apiserver.bundle_loader import load_cluster
from nodeyard.apiserver.controllers import Controllers
from nodeyard.apiserver.controllers.manager import DEFAULT_CONTROLLERS
from nodeyard.apiserver.crds.controller import DefinitionController
from nodeyard.apiserver.crds.resource import resource_of
from nodeyard.apiserver.deletion import Deleter
from nodeyard.apiserver.durability.data_directory import DataDirectory
from nodeyard.apiserver.durability.journal import Journal, NotDurableError
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.events import Events
from nodeyard.apiserver.kinds.catalogue import resources
from nodeyard.apiserver.nonresource_handler import NonResourceHandler
from nodeyard.apiserver.rbac.bootstrap_policy import bootstrap
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.request_context import value_response
from nodeyard.apiserver.request_info import parse
from nodeyard.apiserver.resource_handler import ResourceHandler
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.tokens import TokenSigner
from nodeyard.apiserver.transport import Request, Response, User, request
from nodeyard.apiserver.user_file import KnownUser
from nodeyard.apiserver.users import MASTERS
from nodeyard.apiserver.watches import Hub
from nodeyard.apiserver.worker_thread import LARGE, WorkerThread, is_large_body
from nodeyard.apiserver.writes import TOO_DEEP, Writer
from nodeyard.bundle.model import BundleError, ClusterState
from nodeyard.kube.json import Json, Object
from nodeyard.process.clock import Clock, SystemClock, settle

LOG = logging.getLogger(__name__)
SYSTEM = User("system:apiserver", (MASTERS,))
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class Server:
    def __init__(
        self,
        clock: Clock | None = None,
        *,
        users: Iterable[KnownUser] = (),
        seed: int | None = None,
        address: str = "127.0.0.1:6443",
        services: dict[str, str] | None = None,
        audit: AuditSink | None = None,
        plugins: Sequence[Plugin] = (),
        data: DataDirectory | None = None,
        silent_nodes: str = "",
    ) -> None:
        """`seed` makes uids and generated names repeatable; `services` are the addresses of webhooks' Services.

        `audit` gets an audit event for every answered request. `plugins` run in admission after the built-in
        ones. `data` keeps the cluster on disk; a response leaves only when what it shows is there. Nodes with the
        annotation `silent_nodes` send no heartbeats: a simulation says which of them are lost.
        """
        self.silent_nodes = silent_nodes
        self.clock: Clock = clock or SystemClock()
        self._users = tuple(users)
        self._audit = audit
        self.store = Store()
        self.registry = Registry(resources())
        self.hub = Hub(self.store, self.clock)
        self.events = Events(self.store, self.registry, self.clock)
        signer = TokenSigner(data.token_key) if data is not None else None
        self.access = AccessControl(self.store, self.clock, self._users, signer)
        self.admission = Chain(self, services or {}, plugins)
        self.definitions = DefinitionController(self)
        self.worker_thread = WorkerThread()
        self.writer = Writer(self.store, self.clock, self.admission, Random(seed))
        self.deleter = Deleter(self.store, self.clock, self.admission)
        self.controllers = Controllers(self)
        self._nonresource_handler = NonResourceHandler(self.registry, address)
        self._resources = ResourceHandler(self)
        self._own = ResourceHandler(self, is_privileged=True)
        self.unstored_definitions: list[Object] = []
        self._namespaces = dict.fromkeys(NAMESPACES)
        self._tasks: list[asyncio.Task[None]] = []
        self._data = data
        self._journal: Journal | None = None

    async def start(self, controllers: Iterable[str] = DEFAULT_CONTROLLERS) -> None:
        """Resume the stored cluster, create the default namespaces and roles, and start the controllers."""
        if self._data is not None:
            self._journal = self._resume(self._data)
        self._tasks.append(asyncio.create_task(self.definitions.run()))
        for name in self._namespaces:
            await self._ensure_namespace(name)
        await bootstrap(self, self._users)
        await self.controllers.start(controllers)
        if self._journal is not None:
            await self._journal.settle(0)

    def _resume(self, data: DataDirectory) -> Journal:
        if data.is_empty:
            data.extra = {"version": self._nonresource_handler.version, "unstored": self.unstored_definitions}
            revision, file = self.store.revision, data.begin(self.store, self.events.written())
            return Journal(self.store, self.events, self.hub, self.clock, data, file, revision)
        recovered, file = data.recover(self.store)
        self._nonresource_handler.version = data.extra["version"]
        for definition in data.extra["unstored"]:
            self.serve_kind(definition)
        journal = Journal(self.store, self.events, self.hub, self.clock, data, file, recovered.revision)
        self.definitions.resume()
        self.store.announce(recovered.revision, recovered.compacted)
        self.events.restore(recovered.written)
        return journal

    def load(self, cluster: ClusterState) -> None:
        """Load the objects of a support bundle's cluster, before `start`; raises BundleError.

        `start` creates the namespaces that they are in, if the bundle does not have them. A data directory must be
        empty; it has the bundle once `start` returns.
        """
        if self._data is not None and not self._data.is_empty:
            raise BundleError(f"{self._data.path}: has a cluster already; give an empty directory")
        self._namespaces |= load_cluster(self, cluster)
        if cluster.version:
            self._nonresource_handler.version = cluster.version

    def serve_kind(self, definition: Object) -> None:
        """Serve a custom kind whose CustomResourceDefinition is not stored."""
        self.registry.add(resource_of(definition))
        self.unstored_definitions.append(definition)

    async def stop(self) -> None:
        self.hub.close()
        await self.controllers.stop()
        await self.admission.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self.worker_thread.close()
        if self._journal is not None:
            await self._journal.close()
            self._journal = None

    async def idle(self) -> None:
        """Wait until no controller has anything to do."""
        while True:
            await settle()
            await self.controllers.idle()
            if self.definitions.is_idle():
                return

    async def handle(self, request: Request) -> Response:
        trail = Trail(self.clock.now()) if self._audit is not None else None
        if self._journal is None:
            response = await self._answer(request, trail)
        else:
            response = await self._answer_durably(self._journal, request, trail)
        if self._audit is None or trail is None:
            return response
        self._audit(audit_event(trail, request, response, self.clock.now()))
        return response

    async def _answer_durably(self, journal: Journal, request: Request, trail: Trail | None) -> Response:
        """Answer when everything that the response may show is on disk."""
        failures = journal.failures
        response = await self._answer(request, trail)
        try:
            await journal.settle(failures)
        except NotDurableError as error:
            if response.stream is not None:
                await response.stream.aclose()  # type: ignore[attr-defined]
            return error_response(request, errors.unavailable(f"the data directory does not take writes: {error}"))
        return response

    async def _answer(self, request: Request, trail: Trail | None) -> Response:
        work = self.worker_thread.work()
        try:
            info = parse(request)
            user = self.access.check(request, info)
            if trail is not None:
                trail.info, trail.user = info, user
            if not info.is_resource:
                return await self._nonresource_handler.answer(request, info, work)
            if is_large_body(request):
                request = await work.run(True, lambda: request_body.read_ahead(request))
            return await self._resources.answer(request, info, user, work, None if trail is None else trail.annotations)
        except ApiError as error:
            error.__traceback__ = None  # Its frames keep the objects of the request alive.
            return await work.run(error.is_large, partial(error_response, request, error))
        except RecursionError:
            return error_response(request, errors.bad_request(TOO_DEEP))
        except Exception:
            LOG.exception("request failed: %s %s", request.method, request.path)
            return error_response(
                request, errors.internal(f"{request.method} {request.path} failed; see the log of the server")
            )
        finally:
            work.close()

    async def call(
        self, method: str, url: str, body: Json = None, *, user: User = SYSTEM, content_type: str = "application/json"
    ) -> Json:
        """Make an in-process request as `user` with the server's own rights; raises ApiError."""
        internal = request(method, url, b"" if body is None else body, user=user, content_type=content_type)
        with self.worker_thread.work() as work:
            response = await self._own.answer(internal, parse(internal), user, work)
            payload = response.payload()
            return await work.run(len(payload) > LARGE, lambda: responses.decode(payload)) if payload else None

    async def _ensure_namespace(self, name: str) -> None:
        try:
            await self.call(
                "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
        except ApiError as error:
            if error.code != 409:
                raise


def error_response(request: Request, error: ApiError) -> Response:
    if error.plain:
        return Response(error.code, error.message.encode(), content_type="text/plain; charset=utf-8")
    response = value_response(request, error.status(), error.code)
    response.headers.extend(error.headers)
    return response
