"""The operator's process: configuration, connections, capabilities, health and metrics, put together and taken apart.

    config ─▶ CRDs where asked ─▶ manager (watches, controllers, elections on the lease thread) ─▶ until stopped

What can be wrong with the options is found before anything is started, and said in one line.
"""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from nodeyard.app.connections import Connections
from nodeyard.client.config import Config
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


@dataclass(frozen=True)
class Running:
    """What others may look at while it runs."""

    manager: Manager
    metrics: Metrics
    ports: dict[str, int] = field(default_factory=dict)
    """Where health and metrics listen."""


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
        manager = Manager(client, operation.capabilities, operation.settings, metrics=metrics, elections=elections)
        ports = await _listen(operation, manager.health(), metrics, stack)
        await stack.enter_async_context(manager.running())
        yield Running(manager, metrics, ports)


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
    """What the first lists brought stays for long: the collector need not walk it again and again."""
    await watches.synced()
    gc.collect()
    gc.freeze()


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
            raise CannotListen(f"cannot listen on {address.host}:{address.port}: {error.strerror or error}") from None
        stack.push_async_callback(listener.close)
        ports[name] = listener.port
    return ports
