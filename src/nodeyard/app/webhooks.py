"""Starts admission webhooks in the operator's process and decides how the API server reaches them."""

from __future__ import annotations

import ipaddress
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from nodeyard.admission.client_config import ByUrl
from nodeyard.admission.manager import Admission, Webhooks
from nodeyard.client.api import Client
from nodeyard.process.clock import SystemClock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.health import Health
from nodeyard.runtime.manager import Manager

LOCALHOST: Final = "localhost"

_log = get_logger("operator")


async def admit(
    webhooks: Webhooks, manager: Manager, client: Client, server: str, *, observes: bool, stack: AsyncExitStack
) -> tuple[int, Health]:
    """Start the webhooks of a manager that is not running yet. Return the port, and the health checks of both.

    Webhooks stop after the manager, so requests are answered while the manager finishes its writes. Raises OSError if
    the address is in use.
    """
    admission = Admission(client, manager.controllers, manager.metrics, SystemClock(), observes=observes)
    port = admission.bind(webhooks.bind)
    if webhooks.reach is None:
        webhooks = replace(webhooks, reach=local_url(webhooks.bind.host, port, server))
    await stack.enter_async_context(admission.running(webhooks))
    return port, admission.add_checks(manager.health())


def local_url(host: str, port: int, server: str) -> ByUrl | None:
    """Return the URL of a loopback address if the API server is on this machine too, else None.

    An API server elsewhere could not reach it, and a webhook with failurePolicy Fail would then deny every request.
    """
    if is_loopback(host) and is_loopback(urlsplit(server).hostname or ""):
        return ByUrl(f"https://{f'[{host}]' if ':' in host else host}:{port}")
    _log.warning("webhooks not registered", bind=f"{host}:{port}", server=server,
                 reason="the API server cannot reach this address; set --webhook-service or --webhook-url")  # fmt: skip
    return None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == LOCALHOST
