"""The endpoints for probes and Prometheus: /healthz, /readyz and /metrics.

    /healthz   the process works: its lease thread runs, and no plan hangs
    /readyz    the caches are current: every informer has synced or is broken, and not all are broken

A check returns its error, or an empty string. `?verbose` lists all checks. Warnings are listed only: the problem needs
attention, but taking the process out of service would make it worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from nodeyard.process.http_server import HttpServer, Limits
from nodeyard.process.metrics import CONTENT_TYPE, Metrics

LIMITS: Final = Limits(connections=128, per_peer=64, idle_seconds=90.0, stop_seconds=1.0)
"""Separate from the webhook server, so that exhausted webhook connections do not block probes."""

Check = Callable[[], str]


@dataclass(frozen=True)
class Health:
    live: Mapping[str, Check] = field(default_factory=dict)
    ready: Mapping[str, Check] = field(default_factory=dict)
    warnings: Mapping[str, Check] = field(default_factory=dict)
    """Warnings on /readyz that do not affect the result."""


@dataclass(frozen=True)
class Address:
    host: str
    port: int


class BindError(ValueError):
    """The message names the given value and the expected form."""


def parse_bind(text: str) -> Address:
    """Parse `127.0.0.1:8081`, `[::1]:8081`, `:8081` (all addresses) or `8081` (localhost only)."""
    host, colon, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise BindError(f'"{text}" is not a valid address: use HOST:PORT, for example 127.0.0.1:8081')
    return Address(host.strip("[]") if colon else "127.0.0.1", int(port))


class Listener:
    """A bound address with its HTTP server."""

    def __init__(self, server: HttpServer, port: int) -> None:
        self._server = server
        self.port = port

    async def close(self) -> None:
        await self._server.close()


async def serve(address: Address, *, health: Health | None = None, metrics: Metrics | None = None) -> Listener:
    """Serve the endpoints. Raises OSError if the address is in use."""
    app = web.Application()
    if health is not None:
        app.router.add_get("/healthz", _page(health.live))
        app.router.add_get("/livez", _page(health.live))
        app.router.add_get("/readyz", _page(health.ready, health.warnings))
    if metrics is not None:
        app.router.add_get("/metrics", _metrics_page(metrics))
    server = HttpServer(app, LIMITS)
    port = server.bind(address.host, address.port)
    try:
        await server.start()
    except OSError:
        await server.close()
        raise
    return Listener(server, port)


def _page(
    checks: Mapping[str, Check], warning_checks: Mapping[str, Check] | None = None
) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.Response:
        found = {name: check() for name, check in checks.items()}
        warnings = [f"[!] {name}: {wrong}" for name, check in (warning_checks or {}).items() if (wrong := check())]
        is_well = not any(found.values())
        if is_well and not warnings and "verbose" not in request.query:
            return web.Response(text="ok\n")
        lines = [f"[-] {name}: {wrong}" if wrong else f"[+] {name}: ok" for name, wrong in found.items()] + warnings
        return web.Response(text="\n".join(lines) + "\n", status=200 if is_well else 503)

    return answer


def _metrics_page(metrics: Metrics) -> Callable[[web.Request], Any]:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=await metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    return answer
