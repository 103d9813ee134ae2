"""The dashboard for tests: its server, with or without a cluster, and a client that acts as the browser."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp

from nodeyard.app.dashboard.server import serve_local
from nodeyard.client.kubeconfig import load_config
from nodeyard.dashboard.access import Access, Viewer
from nodeyard.dashboard.feed import Feed
from nodeyard.dashboard.server import DashboardServer
from nodeyard.dashboard.wire import ClusterInfo
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.health import Address

TOKEN = "printed"
LOOPBACK = Address("127.0.0.1", 0)
CLUSTER = ClusterInfo(name="test", server="https://api.test")
TIMEOUT = aiohttp.ClientTimeout(total=60)


class Page:
    """Client of a dashboard that sends what its page sends: the cookie and the Origin."""

    def __init__(self, base, *, ssl=False):
        self.base = base
        self.ssl = ssl
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=TIMEOUT)

    async def request(self, method, path, *, headers=None, **options):
        """Return status, headers and body."""
        sent = {"Origin": self.base, **(headers or {})} if method == "POST" else headers
        options = {"ssl": self.ssl, "allow_redirects": False, "headers": sent, **options}
        async with self.session.request(method, f"{self.base}{path}", **options) as answer:
            return answer.status, answer.headers, await answer.read()

    async def get(self, path, **params):
        status, _, body = await self.request("GET", f"/api/v1/{path}", params=params)
        assert status == 200, body
        return json.loads(body)

    async def post(self, path, value, status=200):
        answered, _, body = await self.request("POST", f"/api/v1/{path}", json=value)
        assert answered == status, body
        return json.loads(body)

    @asynccontextmanager
    async def stream(self, last=None):
        """Yield a function that returns the next event: its id, name and data."""
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        async with self.session.get(f"{self.base}/api/v1/stream", headers=headers, ssl=self.ssl) as answer:
            assert answer.status == 200

            async def next_event():
                fields = {}
                while (line := (await answer.content.readline()).decode()) not in ("\n", ""):
                    if not line.startswith(":"):
                        name, _, value = line.rstrip("\n").partition(": ")
                        fields[name] = value
                if not fields:
                    return await next_event()
                return int(fields["id"]), fields["event"], json.loads(fields["data"])

            yield next_event

    async def until(self, next_event, condition, timeout=20):
        """Return the first event on which the condition is true."""
        async with asyncio.timeout(timeout):
            while True:
                event = await next_event()
                if condition(*event[1:]):
                    return event

    async def until_snapshot(self, condition, timeout=20):
        async with asyncio.timeout(timeout):
            while True:
                snapshot = await self.get("snapshot")
                if found := condition(snapshot):
                    return found
                await asyncio.sleep(0.05)

    async def close(self):
        await self.session.close()


@asynccontextmanager
async def bare_server(routes=(), *, access=None, feed=None, context=None):
    """Serve a dashboard without a cluster; sign in with `?token=printed`."""
    feed = feed or Feed(SystemClock())
    access = access or Access(("127.0.0.1",), local=(TOKEN, Viewer("me", can_approve=True)))
    server = DashboardServer(feed, access, CLUSTER, routes)
    port = server.bind(LOOPBACK, context)
    await server.start()
    page = Page(f"{'http' if context is None else 'https'}://127.0.0.1:{port}")
    try:
        yield page, feed
    finally:
        await page.close()
        await server.close()


@asynccontextmanager
async def signed_in(*arguments, **options):
    async with bare_server(*arguments, **options) as (page, feed):
        await page.request("GET", f"/?token={TOKEN}")
        yield page, feed


@asynccontextmanager
async def local_page(kubeconfig, *capabilities):
    """Run `nodeyard dashboard` in this process; yield a signed-in page."""
    async with serve_local(load_config(kubeconfig), capabilities, LOOPBACK) as url:
        base, _, token = url.partition("/?token=")
        page = Page(base)
        try:
            await page.request("GET", f"/?token={token}")
            yield page
        finally:
            await page.close()
