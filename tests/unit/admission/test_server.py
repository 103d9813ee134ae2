"""The server: TLS, paths, bounds, and certificates that change under it."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from tests.builders.reviews import question

from nodeyard.admission.certificates import BadCertificate, Issue
from nodeyard.admission.reviewer import Answer
from nodeyard.admission.server import MAX_BODY, WebhookServer
from nodeyard.process.certificates import Pair
from nodeyard.runtime.health import Address

HOST = "127.0.0.1"


def issue():
    return Issue.make([HOST], timedelta(days=1), datetime.now(UTC))


class Echo:
    path = "/validate/labels/rules"

    def answer(self, body):
        return Answer(200, body)


class Server:
    def __init__(self, port, webhooks):
        self.port = port
        self.webhooks = webhooks

    async def ask(self, trusted, body=b"{}", *, path=Echo.path, method="POST"):
        context = ssl.create_default_context(cadata=trusted.authority.decode())
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"https://{HOST}:{self.port}{path}"
            async with session.request(method, url, data=body, ssl=context) as response:
                return response.status, await response.read()


@pytest.fixture
async def server():
    webhooks = WebhookServer([Echo()])
    yield Server(webhooks.bind(Address(HOST, 0)), webhooks)
    await webhooks.close()


async def test_it_refuses_connections_until_it_has_a_certificate(server):
    certificate = issue()
    with pytest.raises(aiohttp.ClientConnectorError):
        await server.ask(certificate)
    assert not server.webhooks.is_listening

    assert await server.webhooks.present(certificate.pair)

    assert server.webhooks.is_listening
    assert await server.ask(certificate, question()) == (200, question())


async def test_a_new_certificate_is_presented_to_new_connections(server):
    old, new = issue(), issue()
    await server.webhooks.present(old.pair)
    assert not await server.webhooks.present(old.pair)

    assert await server.webhooks.present(new.pair)

    assert (await server.ask(new))[0] == 200
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await server.ask(old)


async def test_a_certificate_that_does_not_fit_its_key_is_not_presented(server):
    good = issue()
    await server.webhooks.present(good.pair)

    with pytest.raises(BadCertificate, match="cannot be used with its key"):
        await server.webhooks.present(Pair(issue().pair.certificate, issue().pair.key))

    assert (await server.ask(good))[0] == 200


async def test_what_is_not_a_webhook_is_not_found(server):
    certificate = issue()
    await server.webhooks.present(certificate.pair)

    assert (await server.ask(certificate, path="/validate/labels/other"))[0] == 404
    assert (await server.ask(certificate, method="GET"))[0] == 405


async def test_a_body_beyond_all_measure_is_refused(server):
    certificate = issue()
    await server.webhooks.present(certificate.pair)

    assert (await server.ask(certificate, b"x" * (MAX_BODY + 1)))[0] == 413
    assert (await server.ask(certificate, b"x" * MAX_BODY))[0] == 200


async def test_a_request_that_never_arrives_is_given_up(server, monkeypatch):
    monkeypatch.setattr("nodeyard.admission.server.READ_SECONDS", 0.1)
    certificate = issue()
    await server.webhooks.present(certificate.pair)
    context = ssl.create_default_context(cadata=certificate.authority.decode())
    reader, writer = await asyncio.open_connection(HOST, server.port, ssl=context)
    writer.write(f"POST {Echo.path} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n".encode())

    assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    writer.close()


async def test_an_address_is_taken_at_once(server):
    await server.webhooks.present(issue().pair)

    with pytest.raises(OSError, match="in use"):
        WebhookServer([]).bind(Address(HOST, server.port))
