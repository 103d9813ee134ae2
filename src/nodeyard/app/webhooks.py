"""Admission as part of the operator's process: whether there is any, where it listens and how it is reached."""

from __future__ import annotations

import ipaddress
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from nodeyard.admission.reach import ByUrl
from nodeyard.admission.upkeep import Admission, Webhooks
from nodeyard.client.api import Client
from nodeyard.process.clock import SystemClock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.health import Health
from nodeyard.runtime.manager import Manager

LOCALHOST: Final = "localhost"

_log = get_logger("operator")


async def admit(
    chosen: Webhooks, manager: Manager, client: Client, server: str, *, observes: bool, stack: AsyncExitStack
) -> tuple[int, Health]:
    """Begin to serve the webhooks of a manager that does not run yet; the port, and all checks with those of admission.

    It ends after the manager, which may take a while to finish what is in flight: meanwhile reviews are answered.
    Raises OSError where the address is taken.
    """
    admission = Admission(client, manager.controllers, manager.metrics, SystemClock(), observes=observes)
    port = admission.bind(chosen.bind)
    if chosen.reach is None:
        chosen = replace(chosen, reach=nearby(chosen.bind.host, port, server))
    await stack.enter_async_context(admission.running(chosen))
    return port, admission.joined_to(manager.health())


def nearby(host: str, port: int, server: str) -> ByUrl | None:
    """The URL of an address of this machine, for an API server on this machine.

    To any other it would lead nowhere, and where a webhook must not be missed that would refuse every request.
    """
    if is_loopback(host) and is_loopback(urlsplit(server).hostname or ""):
        return ByUrl(f"https://{f'[{host}]' if ':' in host else host}:{port}")
    _log.warning("webhooks are not registered", bind=f"{host}:{port}", server=server,
                 reason="the API server cannot reach them there: say --webhook-service or --webhook-url")  # fmt: skip
    return None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == LOCALHOST
