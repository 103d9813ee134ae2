"""Assembles the operator's process: connections, CRDs, webhooks, manager, health and metrics.

    config ─▶ --install-crds ─▶ webhooks ─▶ manager (informers, controllers, elections on the lease thread) ─▶ SIGTERM

The CLI validates all options before anything starts.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodeyard.client.api import Client, Observer
from nodeyard.client.config import Config
from nodeyard.client.http_transport import HttpTransport
from nodeyard.process import garbage_collection
from nodeyard.process.clock import SystemClock
from nodeyard.process.http_server import raise_file_limit
from nodeyard.process.logs import get_logger
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.crds import install
from nodeyard.runtime.health import Address, Health, serve
from nodeyard.runtime.leader.elections import ThreadElections
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.metrics import request_observer
from nodeyard.runtime.settings import Settings
from nodeyard.watch.informers import InformerFactory

if TYPE_CHECKING:
    from nodeyard.admission.manager import Webhooks
    from nodeyard.app.dashboard.server import DashboardOptions

_log = get_logger("operator")


class CannotListen(OSError):
    """An address cannot be bound; the text names address, reason and option."""


@dataclass(frozen=True)
class Operation:
    """The configuration of one operator process."""

    config: Config
    capabilities: Sequence[Capability]
    settings: Settings
    install_crds: bool = False
    health: Address | None = None
    metrics: Address | None = None
    webhooks: Webhooks | None = None
    """None if webhooks are neither served nor registered."""
    dashboard: DashboardOptions | None = None


@dataclass(frozen=True)
class Running:
    """The parts of a running operator that tests and the demo read."""

    manager: Manager
    metrics: Metrics
    ports: dict[str, int] = field(default_factory=dict)
    """Ports of health, metrics, webhooks and dashboard, by name."""
    health: Health = field(default_factory=Health)


@dataclass(frozen=True)
class _Connections:
    """Creates the clients of the process: those of the main event loop and those of leader election."""

    config: Config
    observe: Observer

    def connect(self, *, timeout: float = 30.0) -> Client:
        """Create a client. Call it on the event loop that will use the client."""
        return Client(HttpTransport(self.config), timeout=timeout, observe=self.observe, on_warning=_log_warning)


def _log_warning(text: str) -> None:
    _log.warning("API server warning", reason=text)


def identity() -> str:
    """Return the holderIdentity of this process: pod or host name and a random suffix."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"


@asynccontextmanager
async def operating(operation: Operation) -> AsyncIterator[Running]:
    """Run an operator. On exit it finishes writes in flight and releases its Leases."""
    metrics = Metrics()
    metrics.expose_process()
    connections = _Connections(operation.config, request_observer(metrics))
    lease_seconds = operation.settings.lease.deadline
    elections = ThreadElections(lambda: connections.connect(timeout=lease_seconds))
    async with AsyncExitStack() as stack:
        client = connections.connect()
        stack.push_async_callback(client.close)
        if operation.install_crds:
            await install(client, operation.capabilities, SystemClock())
        manager = Manager(
            client,
            operation.capabilities,
            operation.settings,
            metrics=metrics,
            elections=elections,
            observe=connections.observe,
        )
        ports, health = await _admit(operation, manager, connections, stack)
        ports |= await _listen(operation, health, metrics, stack)
        ports |= await _serve_dashboard(operation, manager, connections, stack)
        await stack.enter_async_context(manager.running())
        yield Running(manager, metrics, ports, health)


async def operate(operation: Operation, stopped: Callable[[], Awaitable[None]]) -> None:
    """Run an operator until `stopped` returns."""
    raise_file_limit()
    # Logged before the first request: outside a pod the current context may not be the cluster that the user means.
    _log.info("operator starting", cluster=operation.config.source, server=operation.config.server,
              mode="observe" if operation.settings.observe else "write")  # fmt: skip
    async with operating(operation) as running:
        _log.info("operator started", identity=operation.settings.identity, server=operation.config.server,
                  ports=running.ports)  # fmt: skip
        freezing = asyncio.create_task(_freeze_heap(running.manager.informers))
        try:
            await stopped()
        finally:
            freezing.cancel()
            await asyncio.gather(freezing, return_exceptions=True)


async def _freeze_heap(informers: InformerFactory) -> None:
    """Exclude the objects of the initial lists from garbage collection, once all informers are synced."""
    await informers.wait_for_sync()
    garbage_collection.settle()


async def _admit(
    operation: Operation, manager: Manager, connections: _Connections, stack: AsyncExitStack
) -> tuple[dict[str, int], Health]:
    """Start the webhooks if a capability has some. They get their own client, so lookups do not queue behind writes."""
    webhooks = operation.webhooks
    if webhooks is None or not any(each.admission.webhooks for each in operation.capabilities):
        return {}, manager.health()
    # Imported late: the certificate libraries take 12 MB that a process without webhooks does not need.
    from nodeyard.app.webhooks import admit

    client = connections.connect()
    stack.push_async_callback(client.close)
    observes, server = operation.settings.observe, operation.config.server
    try:
        port, health = await admit(webhooks, manager, client, server, observes=observes, stack=stack)
    except OSError as error:
        raise _cannot_listen("--webhook-bind", webhooks.bind, error) from None
    return {"webhooks": port}, health


def _cannot_listen(option: str, address: Address, error: OSError) -> CannotListen:
    where = f"{address.host}:{address.port}"
    # The text of asyncio's error repeats the address.
    reason = os.strerror(error.errno) if error.errno else str(error)
    return CannotListen(f"cannot listen on {where}: {reason}; set another address with {option}, or 0 to disable it")


async def _serve_dashboard(
    operation: Operation, manager: Manager, connections: _Connections, stack: AsyncExitStack
) -> dict[str, int]:
    """Serve the dashboard on the manager's informers. It gets its own client, so writes do not queue behind it."""
    options = operation.dashboard
    if options is None:
        return {}
    # Imported late: a process without a dashboard does not need it.
    from nodeyard.app.dashboard.server import serve_beside

    client = connections.connect()
    stack.push_async_callback(client.close)
    try:
        port = await stack.enter_async_context(serve_beside(manager, client, operation.config, options))
    except OSError as error:
        raise _cannot_listen("--dashboard-bind", options.bind, error) from None
    return {"dashboard": port}


async def _listen(operation: Operation, health: Health, metrics: Metrics, stack: AsyncExitStack) -> dict[str, int]:
    """Serve health and metrics, on one listener if they have the same address."""
    ports = {}
    is_shared = operation.health is not None and operation.health == operation.metrics
    wanted = (
        ("health", operation.health, health, metrics if is_shared else None),
        ("metrics", None if is_shared else operation.metrics, None, metrics),
    )
    for name, address, shown, measured in wanted:
        if address is None:
            continue
        try:
            listener = await serve(address, health=shown, metrics=measured)
        except OSError as error:
            raise _cannot_listen(f"--{name}-bind", address, error) from None
        stack.push_async_callback(listener.close)
        ports[name] = listener.port
    return ports
