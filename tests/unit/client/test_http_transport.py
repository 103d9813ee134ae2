"""The socket transport against a small server that misbehaves on demand."""

import asyncio
import gzip
import ssl
from contextlib import asynccontextmanager

import pytest
import trustme
from aiohttp import web

from nodeyard.client.config import Config, Credentials, Material
from nodeyard.client.errors import TransportError, TransportTimeout, Withheld
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.transport import Request
from nodeyard.process.clock import settle


@asynccontextmanager
async def serving(handler, tls=None):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(server, **options):
    config = server if isinstance(server, Config) else Config(server)
    transport = HttpTransport(config, **options)
    try:
        yield transport
    finally:
        await transport.close()


async def test_method_path_query_headers_and_body_arrive_as_given():
    seen = []

    async def handler(request):
        seen.append((request.method, request.path, dict(request.query), request.headers["X-A"], await request.read()))
        return web.Response(status=201, body=b"made", headers={"X-B": "2"})

    async with serving(handler) as server, connected(server) as transport:
        response = await transport.send(
            Request("POST", "/api/v1/nodes", query={"labelSelector": "a in (b,c)"}, headers={"X-A": "1"}, body=b"{}")
        )
    assert seen == [("POST", "/api/v1/nodes", {"labelSelector": "a in (b,c)"}, "1", b"{}")]
    assert (response.status, response.body, response.headers.get("x-b")) == (201, b"made", "2")


async def test_names_with_special_characters_survive_the_path():
    seen = []

    async def handler(request):
        seen.append(request.path)
        return web.Response()

    async with serving(handler) as server, connected(server) as transport:
        await transport.send(Request("GET", "/apis/rbac/clusterroles/system:node%x"))
    assert seen == ["/apis/rbac/clusterroles/system:node%x"]


async def test_a_server_below_a_path_is_reached_there():
    async def handler(request):
        return web.Response(text=request.path)

    async with serving(handler) as server, connected(Config(f"{server}/clusters/c1/")) as transport:
        assert (await transport.send(Request("GET", "/version"))).body == b"/clusters/c1/version"


async def test_every_warning_header_is_kept():
    async def handler(request):
        response = web.Response()
        response.headers.add("Warning", '299 - "one"')
        response.headers.add("Warning", '299 - "two"')
        return response

    async with serving(handler) as server, connected(server) as transport:
        assert (await transport.send(Request("GET", "/"))).warnings == ('299 - "one"', '299 - "two"')


async def test_requests_in_flight_are_bounded():
    now = peak = 0

    async def handler(request):
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0.01)
        now -= 1
        return web.Response()

    async with serving(handler) as server, connected(server, in_flight=3) as transport:
        await asyncio.gather(*(transport.send(Request("GET", "/")) for _ in range(12)))
    assert peak == 3


async def test_streams_do_not_use_up_the_requests_turns():
    release = asyncio.Event()

    async def handler(request):
        if request.path == "/watch":
            response = web.StreamResponse()
            await response.prepare(request)
            await release.wait()
            return response
        return web.Response(text="ok")

    async with (
        serving(handler) as server,
        connected(server, in_flight=1) as transport,
        transport.stream(Request("GET", "/watch")),
        transport.stream(Request("GET", "/watch")),
    ):
        assert (await transport.send(Request("GET", "/", timeout=5))).body == b"ok"
        release.set()


@pytest.mark.parametrize(("method", "status"), [("PATCH", 429), ("GET", 429), ("GET", 503)])
async def test_a_request_turned_away_unread_is_sent_again_after_the_time_named(method, status):
    answers = [status, 200]

    async def handler(request):
        return web.Response(status=answers.pop(0), headers={"Retry-After": "0"})

    async with serving(handler) as server, connected(server) as transport:
        assert (await transport.send(Request(method, "/"))).status == 200
    assert answers == []


@pytest.mark.parametrize(
    ("method", "status", "headers", "options"),
    [
        ("PATCH", 503, {"Retry-After": "0"}, {}),
        ("GET", 500, {"Retry-After": "0"}, {}),
        ("GET", 429, {}, {}),
        ("GET", 429, {"Retry-After": "0"}, {"retry": False}),
        ("GET", 429, {"Retry-After": "100"}, {"timeout": 1}),
    ],
    ids=["a write at 503", "a server error", "no time named", "not wanted", "no time left"],
)
async def test_otherwise_the_answer_is_given_back(method, status, headers, options):
    count = 0

    async def handler(request):
        nonlocal count
        count += 1
        return web.Response(status=status, headers=headers)

    async with serving(handler) as server, connected(server) as transport:
        assert (await transport.send(Request(method, "/", **options))).status == status
    assert count == 1


async def test_a_401_reloads_the_credentials_once(tmp_path):
    token = tmp_path / "token"
    token.write_text("old")
    seen = []

    async def handler(request):
        seen.append(request.headers["Authorization"])
        token.write_text("new")
        return web.Response(status=200 if seen[-1] == "Bearer new" else 401)

    async with (
        serving(handler) as server,
        connected(Config(server, credentials=Credentials(token_file=token))) as transport,
    ):
        assert (await transport.send(Request("GET", "/"))).status == 200
    assert seen == ["Bearer old", "Bearer new"]


@asynccontextmanager
async def refused():
    """A transport whose token is rejected, and the received requests."""
    asked = []

    async def handler(request):
        asked.append(request.path)
        return web.Response(status=401)

    async with (
        serving(handler) as server,
        connected(Config(server, credentials=Credentials(token="bad"))) as transport,
    ):
        yield transport, asked


async def test_a_token_that_stays_refused_is_a_401():
    async with refused() as (transport, asked):
        assert (await transport.send(Request("GET", "/"))).status == 401
        async with transport.stream(Request("GET", "/")) as stream:
            assert stream.status == 401
    assert len(asked) == 4


async def test_no_server_means_the_request_did_not_run():
    async with connected("http://127.0.0.1:1") as transport:
        with pytest.raises(TransportError, match="GET /x: cannot connect") as caught:
            await transport.send(Request("GET", "/x"))
    assert caught.value.may_have_run is False


async def test_an_unreachable_server_gives_the_same_error_each_time():
    """Conditions quote error texts, and each attempt has its own connections."""
    said = set()
    for _ in range(3):
        async with connected("https://127.0.0.1:1") as transport:
            with pytest.raises(TransportError) as caught:
                await transport.send(Request("GET", "/x"))
        said.add(str(caught.value))
    (words,) = said
    assert words.startswith("GET /x: cannot connect to 127.0.0.1:1: [Errno ")
    assert " object at 0x" not in words


async def test_a_connection_lost_before_the_answer_leaves_it_open_whether_it_ran():
    async def handler(request):
        request.transport.abort()
        return web.Response()

    async with serving(handler) as server, connected(server) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.send(Request("PATCH", "/x"))
    assert caught.value.may_have_run is True


async def test_no_answer_in_time_is_a_timeout():
    async def handler(request):
        await asyncio.Event().wait()

    async with serving(handler) as server, connected(server) as transport:
        with pytest.raises(TransportTimeout, match="no answer in 0.5 s") as caught:
            await transport.send(Request("PATCH", "/x", timeout=0.5))
    assert caught.value.may_have_run is True


async def test_waiting_for_a_turn_does_not_count_against_the_timeout():
    release, held = asyncio.Event(), asyncio.Event()

    async def handler(request):
        if request.path == "/slow":
            held.set()
            await release.wait()
        return web.Response()

    async with serving(handler) as server, connected(server, in_flight=1) as transport:
        first = asyncio.create_task(transport.send(Request("GET", "/slow")))
        await held.wait()
        second = asyncio.create_task(transport.send(Request("GET", "/x", timeout=1)))
        done, _ = await asyncio.wait({second}, timeout=0.05)
        assert not done
        release.set()
        assert [answer.status for answer in await asyncio.gather(first, second)] == [200, 200]


async def test_a_request_that_may_not_be_sent_any_more_when_its_turn_comes_is_not():
    release, held = asyncio.Event(), asyncio.Event()
    asked = []

    async def handler(request):
        asked.append(request.path)
        held.set()
        await release.wait()
        return web.Response()

    async with serving(handler) as server, connected(server, in_flight=1) as transport:
        first = asyncio.create_task(transport.send(Request("GET", "/slow")))
        await held.wait()
        why = ""
        second = asyncio.create_task(transport.send(Request("DELETE", "/x", hold=lambda: why)))
        await settle()
        why = "the lease is lost"
        release.set()
        with pytest.raises(Withheld, match="the lease is lost"):
            await second
        await first
        assert (await transport.send(Request("GET", "/next", hold=lambda: ""))).status == 200
    assert asked == ["/slow", "/next"]


async def test_a_request_that_may_not_be_sent_any_more_is_not_repeated_after_a_401():
    async with refused() as (transport, asked):
        with pytest.raises(Withheld):
            await transport.send(Request("DELETE", "/x", hold=lambda: "the lease is lost" if asked else ""))
    assert len(asked) == 1


async def test_a_request_that_may_not_be_sent_any_more_is_not_handed_to_a_proxy():
    async def handler(request):
        raise AssertionError("it was sent")

    async with serving(handler) as proxy, connected(Config("http://cluster.test", proxy=proxy)) as transport:
        with pytest.raises(Withheld):
            await transport.send(Request("DELETE", "/x", hold=lambda: "the lease is lost"))


@pytest.mark.parametrize("by_proxy", [False, True], ids=["directly", "by a proxy"])
async def test_a_too_large_response_is_an_error(by_proxy):
    async def handler(request):
        return web.Response(body=b"x" * 2_000_000)

    async with serving(handler) as server:
        config = Config("http://cluster.test", proxy=server) if by_proxy else Config(server)
        async with connected(config, largest=1 << 20) as transport:
            with pytest.raises(TransportError, match="GET /x: the response is larger than 1 MiB") as caught:
                await transport.send(Request("GET", "/x"))
    assert caught.value.may_have_run is True


async def test_a_stream_is_read_as_it_comes():
    proceed = asyncio.Event()

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one")
        await proceed.wait()
        await response.write(b"two")
        return response

    async with (
        serving(handler) as server,
        connected(server) as transport,
        transport.stream(Request("GET", "/watch")) as stream,
    ):
        chunks = aiter(stream.chunks)
        assert await anext(chunks) == b"one"
        proceed.set()
        assert [chunk async for chunk in chunks] == [b"two"]


async def test_a_silent_stream_is_detected():
    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()

    async with (
        serving(handler) as server,
        connected(server) as transport,
        transport.stream(Request("GET", "/watch", idle_timeout=0.05)) as stream,
    ):
        with pytest.raises(TransportTimeout, match=r"no data for 0.05 s"):
            await anext(aiter(stream.chunks))


async def test_a_stream_that_does_not_begin_is_a_timeout():
    async def handler(request):
        await asyncio.Event().wait()

    async with serving(handler) as server, connected(server) as transport:
        with pytest.raises(TransportTimeout):
            async with transport.stream(Request("GET", "/watch", timeout=0.5)):
                raise AssertionError("it began")


async def test_a_stream_cut_off_raises():
    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one")
        request.transport.abort()
        return response

    async with (
        serving(handler) as server,
        connected(server) as transport,
        transport.stream(Request("GET", "/watch")) as stream,
    ):
        with pytest.raises(TransportError):
            async for _ in stream.chunks:
                pass


async def test_leaving_a_stream_closes_its_connection():
    gone = asyncio.Event()

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 1000)
                await asyncio.sleep(0)
        finally:
            gone.set()

    async with serving(handler) as server, connected(server) as transport:
        async with transport.stream(Request("GET", "/watch")) as stream:
            await anext(aiter(stream.chunks))
        async with asyncio.timeout(5):
            await gone.wait()


async def test_what_waits_for_its_turn_when_the_transport_is_closed_is_not_sent():
    asked, held = [], asyncio.Event()

    async def handler(request):
        asked.append(request.path)
        held.set()
        await asyncio.Event().wait()

    async with serving(handler) as server, connected(server, in_flight=1) as transport:
        first = asyncio.create_task(transport.send(Request("DELETE", "/first")))
        await held.wait()
        second = asyncio.create_task(transport.send(Request("DELETE", "/second")))
        await settle()
        await transport.close()
        caught = await asyncio.gather(first, second, return_exceptions=True)
    assert [(type(each), each.may_have_run) for each in caught] == [(TransportError, True), (TransportError, False)]
    assert asked == ["/first"]


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:1"], ids=["directly", "by a proxy"])
async def test_a_closed_transport_connects_to_nobody(proxy):
    async with connected(Config("http://127.0.0.1:1", proxy=proxy)) as transport:
        await transport.close()
        for late in (transport.send(Request("GET", "/x")), transport.stream(Request("GET", "/x")).__aenter__()):
            with pytest.raises(TransportError, match="GET /x: cannot connect to .* the client is closed") as caught:
                await late
            assert caught.value.may_have_run is False


class Tls:
    """A server and client certificates of two authorities."""

    def __init__(self):
        self.ca = trustme.CA()
        self.client = self.ca.issue_cert(common_name="me")

    def server_context(self, *names):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names).configure_cert(context)
        self.ca.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def credentials(self):
        return Credentials(
            certificate=Material(self.client.cert_chain_pems[0].bytes()),
            key=Material(self.client.private_key_pem.bytes()),
        )

    @property
    def authority(self):
        return Material(self.ca.cert_pem.bytes())


@pytest.fixture(scope="module")
def tls():
    return Tls()


async def who(request):
    peer = request.transport.get_extra_info("peercert")
    return web.Response(text=dict(pair[0] for pair in peer["subject"])["commonName"] if peer else "nobody")


async def test_a_trusted_server_gets_our_credentials(tls):
    async with serving(who, tls.server_context("127.0.0.1")) as server:
        config = Config(server, authority=tls.authority, credentials=tls.credentials())
        async with connected(config) as transport:
            assert (await transport.send(Request("GET", "/"))).body == b"me"


async def test_an_untrusted_server_gets_no_request(tls):
    async with serving(who, tls.server_context("127.0.0.1")) as server:
        stranger = Material(trustme.CA().cert_pem.bytes())
        async with connected(Config(server, authority=stranger)) as transport:
            with pytest.raises(TransportError, match="certificate verify failed") as caught:
                await transport.send(Request("GET", "/"))
    assert caught.value.may_have_run is False


async def test_verification_can_be_switched_off(tls):
    async with (
        serving(who, tls.server_context("elsewhere")) as server,
        connected(Config(server, verify=False)) as transport,
    ):
        assert (await transport.send(Request("GET", "/"))).body == b"nobody"


async def test_the_name_expected_may_differ_from_the_address(tls):
    async with serving(who, tls.server_context("kubernetes")) as server:
        async with connected(Config(server, authority=tls.authority)) as transport:
            with pytest.raises(TransportError, match="certificate"):
                await transport.send(Request("GET", "/"))
        async with connected(Config(server, authority=tls.authority, server_name="kubernetes")) as transport:
            assert (await transport.send(Request("GET", "/"))).status == 200


async def test_a_renewed_certificate_is_presented_on_new_connections(tls, tmp_path):
    cert, key = tmp_path / "c", tmp_path / "k"

    def put(issued):
        cert.write_bytes(issued.cert_chain_pems[0].bytes())
        key.write_bytes(issued.private_key_pem.bytes())

    put(tls.client)
    credentials = Credentials(certificate=Material(path=cert), key=Material(path=key))
    seen = []

    async def handler(request):
        answer = await who(request)
        seen.append(answer.text)
        put(tls.ca.issue_cert(common_name="me-renewed"))
        return web.Response(status=200 if seen[-1] == "me-renewed" else 401)

    async with (
        serving(handler, tls.server_context("127.0.0.1")) as server,
        connected(Config(server, authority=tls.authority, credentials=credentials)) as transport,
    ):
        assert (await transport.send(Request("GET", "/"))).status == 200
    assert seen == ["me", "me-renewed"]


def compressing(body, encoding="gzip", squeezed=None, asked=None):
    """A server that compresses every response."""

    async def handler(request):
        if asked is not None:
            asked.append(request.headers.getall("Accept-Encoding", []))
        sent = gzip.compress(body) if squeezed is None else squeezed
        return web.Response(body=sent, headers={"Content-Encoding": encoding})

    return handler


async def test_answers_are_asked_for_as_they_are_and_read_though_they_come_compressed():
    asked, body = [], b'{"items": []}' * 20_000
    async with serving(compressing(body, asked=asked)) as server, connected(server) as transport:
        response = await transport.send(Request("GET", "/api/v1/nodes"))
        async with transport.stream(Request("GET", "/api/v1/nodes")) as stream:
            told = b"".join([chunk async for chunk in stream.chunks])
    assert response.body == told == body
    assert asked == [["identity"], ["identity"]]


async def test_all_members_of_a_compressed_answer_are_read():
    members = gzip.compress(b'{"items":') + gzip.compress(b" []}")
    async with serving(compressing(b"", squeezed=members)) as server, connected(server) as transport:
        response = await transport.send(Request("GET", "/api/v1/nodes"))
        async with transport.stream(Request("GET", "/api/v1/nodes")) as stream:
            told = b"".join([chunk async for chunk in stream.chunks])
    assert response.body == told == b'{"items": []}'


async def test_an_answer_that_inflates_beyond_the_limit_is_refused():
    bomb = compressing(b"\0" * (8 << 20))
    async with serving(bomb) as server, connected(server, largest=1 << 20) as transport:
        with pytest.raises(TransportError, match="the response is larger than 1 MiB"):
            await transport.send(Request("GET", "/api/v1/nodes"))


async def test_a_stream_that_inflates_comes_in_pieces_that_are_bounded():
    handler = compressing(b"\0" * (8 << 20))
    async with (
        serving(handler) as server,
        connected(server) as transport,
        transport.stream(Request("GET", "/api/v1/nodes")) as stream,
    ):
        sizes = [len(chunk) async for chunk in stream.chunks]
    assert sum(sizes) == 8 << 20
    assert max(sizes) <= 1 << 20


@pytest.mark.parametrize(
    ("encoding", "squeezed", "said"),
    [
        ("br", b"x", 'content encoding "br" although identity was requested'),
        ("gzip", b"plain", "is declared as gzip and is not"),
        ("gzip", gzip.compress(b"x" * 100, mtime=0)[:-9], "truncated gzip"),
    ],
    ids=["unknown", "not-gzip", "torn"],
)
async def test_an_encoding_that_cannot_be_read_is_refused_by_name(encoding, squeezed, said):
    async with serving(compressing(b"", encoding, squeezed)) as server, connected(server) as transport:
        with pytest.raises(TransportError, match=said):
            await transport.send(Request("GET", "/api/v1/nodes"))
