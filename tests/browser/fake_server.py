"""A server that speaks the dashboard's protocol about a made-up world, for the tests of the page.

By hand: `.venv/bin/python -m tests.browser.fake_server small` serves the world `small` on port 8099.
"""

from __future__ import annotations

import asyncio
import copy
import json
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web
from tests.browser import worlds

STATIC = Path(__file__).parents[2] / "src" / "nodeyard" / "dashboard" / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
Result = TypeVar("Result")


class FakeServer:
    """Serves one world. Tests change it with `push`, `fail`, `drop_streams` and `stop_listening`."""

    def __init__(self, world: worlds.Json, port: int = 0) -> None:
        self.world = world
        self.port = port
        self.failures: dict[str, tuple[int, str, str]] = {}
        self.requests: list[tuple[str, str, Any]] = []
        self.seq = world["snapshot"]["seq"]
        self._streams: set[asyncio.Queue[bytes | None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> FakeServer:
        self._thread.start()
        self._run(self._listen())
        return self

    def stop(self) -> None:
        self.stop_listening()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def stop_listening(self) -> None:
        self.drop_streams()
        if self._runner is not None:
            self._run(self._runner.cleanup())
            self._runner = None

    def listen_again(self) -> None:
        self._run(self._listen())

    def drop_streams(self) -> None:
        self._loop.call_soon_threadsafe(lambda: [queue.put_nowait(None) for queue in self._streams])

    def push(self, event: str, body: worlds.Json) -> None:
        """Sends an event to every stream, and makes it part of later snapshots."""
        self.seq += 1
        snapshot = self.world["snapshot"]
        if event == "nodes":
            rows = {row[0]: row for row in snapshot["nodes"]["rows"]} | {row[0]: row for row in body.get("set", ())}
            snapshot["nodes"]["rows"] = [row for name, row in rows.items() if name not in body.get("delete", ())]
        elif event in snapshot:
            snapshot[event] = body[event]
        snapshot["seq"] = self.seq
        data = json.dumps(body | {"now": snapshot["now"]})
        text = f"id: {self.seq}\nevent: {event}\ndata: {data}\n\n".encode()
        self._loop.call_soon_threadsafe(lambda: [queue.put_nowait(text) for queue in self._streams])

    def fail(self, path: str, status: int = 500, message: str = "It broke.", remedy: str = "Mend it.") -> None:
        self.failures[path] = (status, message, remedy)

    def bodies(self, path: str) -> list[Any]:
        return [body for _, asked, body in self.requests if asked == path]

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _listen(self) -> None:
        app = web.Application(middlewares=[self._answer])
        app.router.add_get("/", self._page)
        app.router.add_static("/static", STATIC)
        app.router.add_get("/api/v1/stream", self._stream)
        app.router.add_get("/api/v1/{path:.*}", self._get)
        app.router.add_post("/api/v1/{path:.*}", self._post)
        self._runner = web.AppRunner(app, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]

    @web.middleware
    async def _answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        path = request.path.removeprefix("/api/v1/")
        if path in self.failures:
            status, message, remedy = self.failures[path]
            body = {"error": {"message": message, "remedy": remedy}}
            return web.json_response(body, status=status, headers=HEADERS)
        response: web.StreamResponse = await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _page(self, _request: web.Request) -> web.Response:
        return web.Response(text=(STATIC / "index.html").read_text(), content_type="text/html")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **HEADERS})
        await response.prepare(request)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._streams.add(queue)
        try:
            await response.write(b": welcome\n\n")
            while (text := await queue.get()) is not None:
                await response.write(text)
        finally:
            self._streams.discard(queue)
        return response

    async def _get(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        self.requests.append(("GET", path, dict(request.query)))
        if path == "why":
            kind, name = request.query["kind"], request.query["name"]
            known = self.world["why"].get(kind)
            return web.json_response(known or worlds.why_node(name))
        if path == "search":
            asked = request.query["q"].lower()
            return web.json_response([item for item in self.world["search"] if asked in item["name"].lower()])
        if path == "plans/actions":
            offset, limit = int(request.query["offset"]), int(request.query["limit"])
            found = self.world["actions"]
            return web.json_response(found | {"actions": found["actions"][offset : offset + limit]})
        return web.json_response(self.world[{"recorder/writes": "writes"}.get(path, path)])

    async def _post(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        text = await request.text()
        body = json.loads(text) if request.content_type == "application/json" else text
        self.requests.append(("POST", path, body))
        if path == "approve":
            for plan in self.world["snapshot"]["plans"]:
                if plan["id"] == body["id"] and plan["held"]:
                    remaining = copy.deepcopy(self.world["snapshot"]["plans"])
                    next(each for each in remaining if each["id"] == body["id"])["held"] = None
                    self.push("plans", {"plans": remaining})
                    answer = {"approved": True, "by": "jane", "message": "The plan is approved; 40 nodes go now."}
                    return web.json_response(answer)
            changed = {"error": {"message": "The plan has changed.", "remedy": "Read it again."}, "id": "0123456789ab"}
            return web.json_response(changed, status=409)
        return web.json_response(self.world.get(path, {}))


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "small"
    server = FakeServer(getattr(worlds, name)(), port=8099).start()
    print(server.url)
    threading.Event().wait()


if __name__ == "__main__":
    main()
