"""The operator's process: configuration, connections, capabilities, health and metrics, put together and taken apart.

    config ─▶ CRDs where asked ─▶ webhooks ─▶ manager (watches, controllers, elections on the lease thread) ─▶ until
    stopped

What can be wrong with the options is found before anything is started, and said in one line.
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

from nodeyard.app.connections import Connections
from nodeyard.client.config import Config
from nodeyard.process import collector
from nodeyard.process.clock import SystemClock
from nodeyard.process.logs import get_logger
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.crds import install
from nodeyard.runtime.elections import ThreadElections
from nodeyard.runtime.health import Address, Health, serve
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.settings import Settings
from nodeyard.watch.watches import Watches

if TYPE_CHECKING:
    from nodeyard.admission.upkeep import Webhooks

_log = get_logger("operator")


class CannotListen(OSError):
    """The text names the address and the reason."""


@dataclass(frozen=True)
class Operation:
    """Everything a process needs to know."""

    config: Config
    capabilities: Sequence[Capability]
    settings: Settings
    install_crds: bool = False
    health: Address | None = None
    metrics: Address | None = None
    webhooks: Webhooks | None = None
    """None: the capabilities' webhooks are neither served nor registered."""


@dataclass(frozen=True)
class Running:
    """What others may look at while it runs."""

    manager: Manager
    metrics: Metrics
    ports: dict[str, int] = field(default_factory=dict)
    """Where health, metrics and webhooks listen."""
    health: Health = field(default_factory=Health)


def identity() -> str:
    """Unique to this process, and telling to a person who reads the Lease."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"


@asynccontextmanager
async def operating(operation: Operation) -> AsyncIterator[Running]:
    """Started when it yields; on the way out it finishes what is in flight and gives the leases back."""
    metrics = Metrics()
    connections = Connections.of(operation.config, metrics)
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
        await stack.enter_async_context(manager.running())
        yield Running(manager, metrics, ports, health)


async def operate(operation: Operation, stopped: Callable[[], Awaitable[None]]) -> None:
    """Until `stopped` returns."""
    async with operating(operation) as running:
        _log.info("operating", identity=operation.settings.identity, server=operation.config.server,
                  ports=running.ports)  # fmt: skip
        settling = asyncio.create_task(_settle_memory(running.manager.watches))
        try:
            await stopped()
        finally:
            settling.cancel()
            await asyncio.gather(settling, return_exceptions=True)


async def _settle_memory(watches: Watches) -> None:
    """What the first lists brought stays for long."""
    await watches.synced()
    collector.settle()


async def _admit(
    operation: Operation, manager: Manager, connections: Connections, stack: AsyncExitStack
) -> tuple[dict[str, int], Health]:
    """Webhooks, where a capability has some; what they look up does not wait behind what is being written."""
    chosen = operation.webhooks
    if chosen is None or not any(each.webhooks for each in operation.capabilities):
        return {}, manager.health()
    # Certificates and all that is about them take 12 MB, which a process without webhooks does not need.
    from nodeyard.app.webhooks import admit

    client = connections.connect()
    stack.push_async_callback(client.close)
    observes, server = operation.settings.observe, operation.config.server
    try:
        port, health = await admit(chosen, manager, client, server, observes=observes, stack=stack)
    except OSError as error:
        raise _cannot_listen(chosen.bind, error) from None
    return {"webhooks": port}, health


def _cannot_listen(address: Address, error: OSError) -> CannotListen:
    return CannotListen(f"cannot listen on {address.host}:{address.port}: {error.strerror or error}")


async def _listen(operation: Operation, health: Health, metrics: Metrics, stack: AsyncExitStack) -> dict[str, int]:
    """Health and metrics may share an address."""
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
            raise _cannot_listen(address, error) from None
        stack.push_async_callback(listener.close)
        ports[name] = listener.port
    return ports
