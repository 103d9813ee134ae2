"""The HTTPS client of webhooks: one connection pool, and errors in the real server's words."""

from __future__ import annotations

import asyncio
import errno
import ssl

import aiohttp
import msgspec
from yarl import URL

from nodeyard.apiserver.admission.webhooks.endpoints import Endpoint, Services
from nodeyard.apiserver.admission.webhooks.errors import CallError
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Object

_HEADERS = {
    "User-Agent": "kube-apiserver-admission",
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
}
_STATUS_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_KEEP_SERVER_TEXT = (403, 406, 415)
_REFUSED_BY_TLS = "tls: failed to verify certificate: x509: "


class WebhookClient:
    """Posts AdmissionReviews. A server has one and closes it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[tuple[bytes, str], ssl.SSLContext] = {}

    async def post(self, endpoint: Endpoint, review: Object, timeout: int) -> bytes:
        """Return the body of the answer; raise CallError if there is none."""
        shown = f"{endpoint.url}?timeout={timeout}s"
        context = self._context(endpoint)
        try:
            async with asyncio.timeout(timeout):
                status, body = await self._send_again(endpoint, shown, context, msgspec.json.encode(review))
        except (aiohttp.ClientError, OSError, LookupError) as fault:
            # TimeoutError is an OSError.
            raise CallError(f"failed to call webhook: Post {quote(shown)}: {_describe(fault)}") from fault
        if status >= 300:
            raise CallError(f"failed to call webhook: {_describe_status(status, body)}")
        return body

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send_again(
        self, endpoint: Endpoint, url: str, context: ssl.SSLContext, body: bytes
    ) -> tuple[int, bytes]:
        """Send again if a pooled connection was closed while it was reused."""
        try:
            return await self._send(endpoint, url, context, body)
        except aiohttp.ServerDisconnectedError:
            return await self._send(endpoint, url, context, body)

    async def _send(self, endpoint: Endpoint, url: str, context: ssl.SSLContext, body: bytes) -> tuple[int, bytes]:
        target, headers, server_hostname = URL(url), _HEADERS, None
        if endpoint.service is not None:
            host, port = self._services.resolve(endpoint.service)
            headers = {**_HEADERS, "Host": f"{endpoint.service.host}:{endpoint.service.port}"}
            target, server_hostname = target.with_host(host).with_port(port), endpoint.service.host
        async with self._open().post(
            target,
            data=body,
            headers=headers,
            ssl=context,
            server_hostname=server_hostname,
            allow_redirects=False,
        ) as response:
            return response.status, await response.read()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Each webhook has its own timeout. The pool is not bounded, because the waiting requests are not.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
            )
        return self._session

    def _context(self, endpoint: Endpoint) -> ssl.SSLContext:
        """Return the context of a CA bundle and server name; the pool keys connections by it."""
        key = (endpoint.ca, endpoint.service.host if endpoint.service else "")
        if key not in self._contexts:
            self._contexts[key] = endpoint.context()
        return self._contexts[key]


def _describe(fault: Exception) -> str:
    if isinstance(fault, TimeoutError):
        return "context deadline exceeded"
    if isinstance(fault, aiohttp.ClientConnectorCertificateError):
        return _REFUSED_BY_TLS + _describe_certificate(fault)
    if isinstance(fault, aiohttp.ClientConnectorSSLError):
        is_plain = "WRONG_VERSION_NUMBER" in str(fault) or "HTTP_REQUEST" in str(fault)
        return "http: server gave HTTP response to HTTPS client" if is_plain else f"tls: {fault}"
    if isinstance(fault, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {fault.host}: no such host"
    if isinstance(fault, aiohttp.ClientConnectorError):
        reason = "connection refused" if fault.os_error.errno == errno.ECONNREFUSED else str(fault.os_error)
        return f"dial tcp {fault.host}:{fault.port}: connect: {reason}"
    if isinstance(fault, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(fault) or type(fault).__name__


def _describe_certificate(fault: aiohttp.ClientConnectorCertificateError) -> str:
    error = fault.certificate_error
    if not isinstance(error, ssl.SSLCertVerificationError):
        return str(error)
    message = error.verify_message
    if "IP address mismatch" in message:
        return f"cannot validate certificate for {fault.host} because it doesn't contain any IP SANs"
    if "Hostname mismatch" in message:
        _, _, name = message.partition("not valid for ")
        return f"certificate is not valid for any names, but wanted to match {name.strip(chr(39) + '.')}"
    if "expired" in message or "not yet valid" in message:
        return "certificate has expired or is not yet valid"
    return "certificate signed by unknown authority"


def _describe_status(status: int, body: bytes) -> str:
    text = body.decode(errors="replace").strip() or "unknown"
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError:
        answer = None
    if isinstance(answer, dict) and answer.get("kind") == "Status" and answer.get("message"):
        return str(answer["message"])
    if status in _KEEP_SERVER_TEXT:
        return text
    if status in _STATUS_TEXTS:
        return _STATUS_TEXTS[status]
    if status >= 500:
        return f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"
