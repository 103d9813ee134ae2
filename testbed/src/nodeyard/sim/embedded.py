"""Client of an embedded API server in the same process, without a socket."""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.apiserver.server import Server
from nodeyard.apiserver.transport import Request, Response, User
from nodeyard.client.api import Client
from nodeyard.sim.in_process import InProcessTransport

ADMIN = User("admin", ("system:masters", "system:authenticated"))


def connect(server: Server, user: User = ADMIN) -> Client:
    """Return a client of this server that acts as `user`, on the server's clock."""

    async def exchange(
        method: str, path: str, query: Mapping[str, tuple[str, ...]], headers: Mapping[str, str], body: bytes
    ) -> Response:
        return await server.handle(Request(method, path, query, headers, body, user=user))

    return Client(InProcessTransport(exchange, server.clock))
