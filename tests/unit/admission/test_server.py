"""The server: TLS, paths, bounds, and certificates that change under it."""

import asyncio
import functools
import ssl
import zlib
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from tests.builders import rule_webhooks
from tests.builders.reviews import question

from nodeyard.admission.certificates import BadCertificate, IssuedCertificate
from nodeyard.admission.reviewer import Answer
from nodeyard.admission.server import MAX_BODY, ClientTrust, WebhookServer
from nodeyard.process.certificates import Authority, Pair
from nodeyard.process.http_server import Budget
from nodeyard.runtime.health import Address

HOST = "127.0.0.1"


def issue():
    return IssuedCertificate.make([HOST], timedelta(days=1), datetime.now(UTC))


class Echo:
    path = "/validate/labels/rules"

    def answer(self, body):
        return Answer(200, body)


class Registered:
    """Fake registered paths; a new one is known after a refresh."""

    def __init__(self):
        self.paths, self.coming, self.looks = {Echo.path}, set(), 0

    def __contains__(self, path):
        return path in self.paths

    async def refresh(self):
        self.looks += 1
        self.paths |= self.coming


class Server:
    def __init__(self, port, webhooks, registered):
        self.port = port
        self.webhooks = webhooks
        self.registered = registered

    async def ask(self, trusted, body=b"{}", *, path=Echo.path, method="POST", client=None, headers=None):
        context = ssl.create_default_context(cadata=trusted.authority.decode())
        if client is not None:
            context.load_cert_chain(client)
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"https://{HOST}:{self.port}{path}"
            async with session.request(method, url, data=body, ssl=context, headers=headers) as response:
                return response.status, await response.read()


@pytest.fixture
async def server():
    registered = Registered()
    webhooks = WebhookServer([Echo()], registered)
    yield Server(webhooks.bind(Address(HOST, 0)), webhooks, registered)
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


async def test_an_unknown_path_is_not_found(server):
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
        WebhookServer([], Registered()).bind(Address(HOST, server.port))


async def test_only_the_registered_path_is_answered_and_a_new_one_is_looked_up(server):
    certificate, registered = issue(), server.registered
    await server.webhooks.present(certificate.pair)

    assert await server.ask(certificate, path=f"{Echo.path}/guessed") == (404, b"not found")
    assert registered.looks == 1
    registered.coming = {f"{Echo.path}/new"}
    assert (await server.ask(certificate, path=f"{Echo.path}/new"))[0] == 200


async def test_connections_that_guess_paths_are_closed(server, monkeypatch):
    certificate = issue()
    await server.webhooks.present(certificate.pair)
    server.webhooks.strangers = Budget(rate=0.0, burst=3.0)

    statuses = [(await server.ask(certificate, path=f"{Echo.path}/x"))[0] for _ in range(5)]

    assert statuses == [404, 404, 404, 429, 429]
    assert server.registered.looks == 3
    assert (await server.ask(certificate))[0] == 200, "API servers, who know the path, are not limited"


async def test_with_client_certificates_only_those_of_api_servers_are_answered(server, tmp_path):
    certificate, authority = issue(), Authority("api-servers")
    trust = ClientTrust(authority.pem, frozenset({"kube-apiserver"}))
    await server.webhooks.present(certificate.pair, trust)
    files = {}
    for name, signer in (("kube-apiserver", authority), ("kubelet", authority), ("forged", Authority("other"))):
        pair = signer.client("kube-apiserver" if name == "forged" else name)
        files[name] = tmp_path / name
        files[name].write_bytes(pair.certificate + pair.key)

    assert (await server.ask(certificate, path=f"{Echo.path}/any", client=files["kube-apiserver"]))[0] == 200
    assert (await server.ask(certificate, client=files["kubelet"]))[0] == 403
    for client in (None, files["forged"]):
        with pytest.raises(aiohttp.ClientError):
            await server.ask(certificate, client=client)
        received = functools.partial(rule_webhooks.received, server.port, Echo.path, b"{}", client=client)
        assert await asyncio.gather(*(asyncio.to_thread(received) for _ in range(20))) == [b""] * 20
    answer = await asyncio.to_thread(
        rule_webhooks.received, server.port, Echo.path, b"{}", client=files["kube-apiserver"]
    )
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("encoding", ["deflate", "gzip", "br"])
async def test_compressed_bodies_are_refused_unread(server, encoding):
    certificate = issue()
    await server.webhooks.present(certificate.pair)
    bomb = zlib.compress(b" " * (64 << 20))

    status, _ = await server.ask(certificate, bomb, headers={"Content-Encoding": encoding})

    assert status == 415
