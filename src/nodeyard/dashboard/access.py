"""Access to the page: sessions, and the checks of every request.

    Host ─▶ Origin (POST) ─▶ session cookie ─▶ viewer

A session begins with the token that `nodeyard dashboard` prints, or with a Kubernetes bearer token, or for each
connection with a verified client certificate. The cookie only names the session; a bearer token stays in the memory of
this process.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from hmac import compare_digest
from typing import Any, Final

from aiohttp import web

from nodeyard.client.api import Client
from nodeyard.client.config import Config
from nodeyard.client.errors import ClientError
from nodeyard.dashboard.feed import Visible
from nodeyard.dashboard.wire import Refused
from nodeyard.process.http_server import Budget
from nodeyard.process.logs import get_logger

COOKIE: Final = "nodeyard_session"
SESSIONS: Final = 1000
SESSION_SECONDS: Final = 12 * 3600.0
CHECK_SECONDS: Final = 60.0
"""Age at which a session's rights are checked again."""
LOGINS_PER_SECOND: Final = 0.5
LOGINS_AT_ONCE: Final = 10.0
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")

_log = get_logger("dashboard")


@dataclass(frozen=True)
class Viewer:
    """A person who looks at the page, and their credentials."""

    name: str
    client: Client | None = None
    """Acts with the viewer's own credentials; None for a viewer without any, who only reads."""
    config: Config | None = None
    """The same for a client on another event loop."""
    can_approve: bool = False
    visible: Visible = None


@dataclass
class _Session:
    viewer: Viewer
    token: str = field(default="", repr=False)
    used: float = field(default_factory=time.monotonic)
    checked: float = field(default_factory=time.monotonic)


Check = Callable[[str], Awaitable[Viewer]]
"""Returns the viewer of a Kubernetes bearer token; raises Refused."""


class Access:
    def __init__(
        self,
        hosts: Iterable[str],
        *,
        local: tuple[str, Viewer] | None = None,
        check: Check | None = None,
        certified: Viewer | None = None,
        is_secure: bool = False,
    ) -> None:
        """`hosts` are the names by which the page is reached, beside those of the loopback address.

        `local` is the printed token with its viewer, `check` verifies bearer tokens, and `certified` is the viewer with
        a client certificate. `is_secure` tells that the page is served over TLS.
        """
        self._hosts = frozenset(each.lower() for each in (*hosts, *_LOCAL_NAMES))
        self._local = local
        self._check = check
        self._certified = certified
        self._scheme = "https" if is_secure else "http"
        self._sessions: dict[str, _Session] = {}
        self._logins = Budget(LOGINS_PER_SECOND, LOGINS_AT_ONCE)

    # requests

    def check_host(self, request: web.Request) -> None:
        """Refuse a name that is not ours: a page elsewhere may have bound its own name to our address."""
        name = _without_port(request.headers.get("Host", "")).lower()
        wildcard = f"*.{name.partition('.')[2]}"
        if name not in self._hosts and wildcard not in self._hosts:
            remedy = "Open the page by its own address: localhost, or a name in its certificate."
            raise Refused(421, f"{name or 'no name'} is not a name of this server.", remedy)

    def check_origin(self, request: web.Request) -> None:
        if request.headers.get("Origin", "").lower() != f"{self._scheme}://{request.headers.get('Host', '')}".lower():
            raise Refused(403, "The request does not come from this page.", "Use the page itself.")

    async def viewer_of(self, request: web.Request) -> Viewer:
        """Return who sent the request. Raises Refused if nobody has signed in."""
        id = request.cookies.get(cookie_name(request), "")
        session = self._sessions.get(id)
        now = time.monotonic()
        if session is not None and now - session.used > SESSION_SECONDS:
            await self._end(id)
            session = None
        if session is None:
            if self._certified is not None and (name := certified_name(request)):
                return Viewer(name, visible=self._certified.visible)
            raise Refused(401, "You are not signed in.", self.remedy)
        session.used = now
        if session.token and now - session.checked > CHECK_SECONDS:
            await self._renew(id, session)
        return session.viewer

    @property
    def remedy(self) -> str:
        if self._local is not None:
            return "Open the address with the token that `nodeyard dashboard` printed."
        return "Sign in with a Kubernetes bearer token, for example of `kubectl create token`."

    # sessions

    async def open_local(self, token: str) -> str:
        """Return the cookie of a new session for the printed token."""
        if self._local is None or not compare_digest(token.encode(), self._local[0].encode()):
            raise Refused(401, "The token in the address is not that of this process.", self.remedy)
        return await self._begin(_Session(self._local[1]))

    async def log_in(self, token: str, peer: str) -> tuple[str, Viewer]:
        """Return the cookie of a new session for a Kubernetes bearer token, and its viewer."""
        if self._check is None:
            raise Refused(404, "This page takes no bearer tokens.", self.remedy)
        if not self._logins.take(peer, time.monotonic()):
            raise Refused(429, "Too many attempts to sign in.", "Wait a few seconds and try again.")
        viewer = await self._check(token)
        return await self._begin(_Session(viewer, token)), viewer

    async def log_out(self, request: web.Request) -> None:
        await self._end(request.cookies.get(cookie_name(request), ""))

    def set_cookie(self, request: web.Request, response: web.StreamResponse, id: str) -> None:
        is_secure = self._scheme == "https"
        response.set_cookie(cookie_name(request), id, httponly=True, samesite="Strict", path="/", secure=is_secure)

    async def close(self) -> None:
        for id in tuple(self._sessions):
            await self._end(id)

    async def _begin(self, session: _Session) -> str:
        if len(self._sessions) >= SESSIONS:
            await self._end(min(self._sessions, key=lambda id: self._sessions[id].used))
        id = secrets.token_urlsafe(32)
        self._sessions[id] = session
        return id

    async def _end(self, id: str) -> None:
        session = self._sessions.pop(id, None)
        if session is not None and session.token and session.viewer.client is not None:
            await session.viewer.client.close()

    async def _renew(self, id: str, session: _Session) -> None:
        """Check the rights of a session again; it ends if the token is not valid any more."""
        session.checked = time.monotonic()
        if self._check is None:
            return
        try:
            viewer = await self._check(session.token)
        except Refused:
            await self._end(id)
            raise
        except ClientError as error:
            # While the API server does not answer, the page goes on as it was: it is needed most then.
            _log.warning("viewer not checked", viewer=session.viewer.name, reason=str(error))
            return
        # Requests of the session may still use its client.
        if viewer.client is not None:
            await viewer.client.close()
        session.viewer = replace(viewer, client=session.viewer.client)


def cookie_name(request: web.Request) -> str:
    """Return the cookie's name: browsers send the cookies of a host to all its ports, where other dashboards may be."""
    port = request.headers.get("Host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isascii() and port.isdigit() and len(port) < 6 else COOKIE


def certified_name(request: web.Request) -> str:
    """Return the common name of the connection's verified client certificate; empty without one."""
    certificate: dict[str, Any] | None = None
    if request.transport is not None:
        certificate = request.transport.get_extra_info("peercert")
    attributes = (pair for part in (certificate or {}).get("subject", ()) for pair in part)
    return next((str(value) for name, value in attributes if name == "commonName"), "")


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def host_names(bind: str) -> tuple[str, ...]:
    """Return the Host names of a bound address; none for an address that stands for all."""
    try:
        address = ipaddress.ip_address(bind)
    except ValueError:
        return (bind,) if bind else ()
    if address.is_unspecified:
        return ()
    return (f"[{bind}]" if address.version == 6 else bind,)
