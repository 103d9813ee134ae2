"""What a kubelet and Prometheus ask: /healthz, /readyz and /metrics.

    /healthz   the process can do its work: its lease loop lives, and no plan hangs
    /readyz    what it knows is current: every watch has told everything, and none is stale

A check returns what is wrong, or nothing. `?verbose` lists all of them. Some only tell: what is wrong then will do
harm if nobody looks after it, and would do more if the process were taken out of service for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from nodeyard.process.metrics import CONTENT_TYPE, Metrics

Check = Callable[[], str]


@dataclass(frozen=True)
class Health:
    live: Mapping[str, Check] = field(default_factory=dict)
    ready: Mapping[str, Check] = field(default_factory=dict)
    telling: Mapping[str, Check] = field(default_factory=dict)
    """Beside those of readiness, which does not depend on them."""


@dataclass(frozen=True)
class Address:
    host: str
    port: int


class BindError(ValueError):
    """The text names what was given and what is meant."""


def parse_bind(text: str) -> Address:
    """`127.0.0.1:8081`, `[::1]:8081`, `:8081` (all addresses), `8081` (this machine only)."""
    host, colon, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise BindError(f'"{text}" is no address: HOST:PORT, for example 127.0.0.1:8081')
    return Address(host.strip("[]") if colon else "127.0.0.1", int(port))


class Listener:
    """One address with the pages it serves."""

    def __init__(self, runner: web.AppRunner) -> None:
        self._runner = runner

    @property
    def port(self) -> int:
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        await self._runner.cleanup()


async def serve(address: Address, *, health: Health | None = None, metrics: Metrics | None = None) -> Listener:
    """Raises OSError where the address is taken."""
    app = web.Application()
    if health is not None:
        app.router.add_get("/healthz", _page(health.live))
        app.router.add_get("/livez", _page(health.live))
        app.router.add_get("/readyz", _page(health.ready, health.telling))
    if metrics is not None:
        app.router.add_get("/metrics", _metrics_page(metrics))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host or None, address.port).start()
    except OSError:
        await runner.cleanup()
        raise
    return Listener(runner)


def _page(checks: Mapping[str, Check], telling: Mapping[str, Check] | None = None) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.Response:
        found = {name: check() for name, check in checks.items()}
        told = [f"[!] {name}: {wrong}" for name, check in (telling or {}).items() if (wrong := check())]
        is_well = not any(found.values())
        if is_well and not told and "verbose" not in request.query:
            return web.Response(text="ok\n")
        lines = [f"[-] {name}: {wrong}" if wrong else f"[+] {name}: ok" for name, wrong in found.items()] + told
        return web.Response(text="\n".join(lines) + "\n", status=200 if is_well else 503)

    return answer


def _metrics_page(metrics: Metrics) -> Callable[[web.Request], Any]:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=await metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    return answer
