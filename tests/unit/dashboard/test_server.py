"""The dashboard's HTTP server: who is answered, what every answer carries, and how streams go on."""

import asyncio
import json
import ssl

import aiohttp
import pytest
from aiohttp.web_protocol import RequestHandler
from tests.builders.dashboard import TOKEN, Page, bare_server, signed_in

from nodeyard.app.dashboard.server import DashboardTls, certificate_names, server_context
from nodeyard.client.errors import TransportError, error_from_answer
from nodeyard.dashboard import server as module
from nodeyard.dashboard.access import Access, Viewer
from nodeyard.dashboard.feed import BACKLOG, Feed
from nodeyard.dashboard.server import HEADERS, Query, Route
from nodeyard.dashboard.tiles import Row
from nodeyard.dashboard.wire import OperatorInfo, Refused
from nodeyard.process.certificates import Authority
from nodeyard.process.clock import SystemClock


async def echo(viewer, query):
    return {"viewer": viewer.name, "params": dict(query.params), "body": query.body.decode()}


async def fail(_viewer, _query):
    raise ValueError("s3cret of the server")


async def forbid(_viewer, _query):
    raise error_from_answer(403, {}, b"nodes is forbidden")


ROUTES = (
    Route("GET", "echo", echo),
    Route("POST", "echo", echo, body=1000),
    Route("POST", "yaml", echo, is_yaml=True),
    Route("GET", "fail", fail),
    Route("GET", "forbid", forbid),
)


def row(name, state="spare"):
    return Row(name, "a", "", "", "", "", "", state, "", None, None)


def message(body):
    return json.loads(body)["error"]["message"]


async def test_an_unauthenticated_user_gets_no_data():
    async with bare_server(ROUTES) as (page, _):
        for path in ("snapshot", "stream", "echo"):
            status, _, body = await page.request("GET", f"/api/v1/{path}")
            assert status == 401
            assert (
                json.loads(body)["error"]["remedy"]
                == "Open the address with the token that `nodeyard dashboard` printed."
            )
        assert (await page.request("POST", "/api/v1/echo", json={}))[0] == 401


async def test_the_printed_token_signs_in_by_a_cookie_that_scripts_cannot_read():
    async with bare_server(ROUTES) as (page, _):
        status, headers, _ = await page.request("GET", f"/?token={TOKEN}")
        assert (status, headers["Location"]) == (303, "/")
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert TOKEN not in cookie
        assert (await page.get("snapshot"))["viewer"] == {"name": "me", "canApprove": True}


async def test_two_dashboards_of_one_machine_keep_their_sessions_apart():
    async with bare_server() as (first, _), bare_server() as (second, _):
        second.session = first.session
        for page in (first, second):
            await page.request("GET", f"/?token={TOKEN}")
        for page in (first, second):
            assert (await page.get("snapshot"))["viewer"]["name"] == "me"


async def test_a_wrong_token_signs_nobody_in():
    async with bare_server() as (page, _):
        status, headers, _ = await page.request("GET", "/?token=guess")
        assert status == 401
        assert "Set-Cookie" not in headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
async def test_a_foreign_host_name_is_refused(host):
    async with signed_in(ROUTES) as (page, _):
        status, _, body = await page.request("GET", "/api/v1/snapshot", headers={"Host": host})
        assert status in (400, 421)
        if status == 421:
            assert "is not a name of this server" in message(body)
        assert b"nodes" not in body


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
async def test_every_name_of_the_loopback_address_is_answered(name):
    async with signed_in() as (page, _):
        port = page.base.rpartition(":")[2]
        cookies = {each.key: each.value for each in page.session.cookie_jar}
        named = {"Host": f"{name}:{port}", "Cookie": "; ".join(f"{key}={value}" for key, value in cookies.items())}
        assert (await page.request("GET", "/api/v1/snapshot", headers=named))[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", ""])
async def test_a_post_from_another_page_is_refused(origin):
    async with signed_in(ROUTES) as (page, _):
        status, _, body = await page.request("POST", "/api/v1/echo", json={}, headers={"Origin": origin})
        assert (status, message(body)) == (403, "The request does not come from this page.")


async def test_a_post_needs_a_type_that_no_plain_form_has():
    async with signed_in(ROUTES) as (page, _):
        for sent in ("text/plain", "application/x-www-form-urlencoded", "application/yaml"):
            status, _, _ = await page.request("POST", "/api/v1/echo", data="{}", headers={"Content-Type": sent})
            assert status == 415
        assert (await page.request("POST", "/api/v1/yaml", json={}))[0] == 415
        yaml = {"Content-Type": "application/yaml"}
        assert (await page.request("POST", "/api/v1/yaml", data="a: b", headers=yaml))[0] == 200


async def test_bodies_are_bounded_with_and_without_a_length():
    async def chunks():
        for _ in range(100):
            yield b" " * 100

    async with signed_in(ROUTES) as (page, _):
        as_json = {"Content-Type": "application/json"}
        for body in (b" " * 1001, chunks()):
            status, _, answer = await page.request("POST", "/api/v1/echo", data=body, headers=as_json)
            assert (status, message(answer)) == (413, "The body is larger than 0 KiB.")
        assert (await page.request("POST", "/api/v1/echo", data=b" " * 1000, headers=as_json))[0] == 200


async def test_a_compressed_body_is_refused():
    async with signed_in(ROUTES) as (page, _):
        packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        status, _, _ = await page.request("POST", "/api/v1/echo", data=b"{}", headers=packed)
        assert status == 415


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "READ_SECONDS", 0.1)

    async def never():
        yield b"{"
        await asyncio.Event().wait()

    async with signed_in(ROUTES) as (page, _):
        as_json = {"Content-Type": "application/json"}
        async with asyncio.timeout(10):
            assert (await page.request("POST", "/api/v1/echo", data=never(), headers=as_json))[0] == 408


async def test_every_answer_carries_the_policy():
    asked = (
        ("GET", "/", {}),
        ("GET", f"/?token={TOKEN}", {}),
        ("GET", "/?token=guess", {}),
        ("GET", "/static/nothing.js", {}),
        ("GET", "/nowhere", {}),
        ("DELETE", "/api/v1/snapshot", {}),
        ("GET", "/api/v1/snapshot", {}),
        ("GET", "/api/v1/fail", {}),
        ("GET", "/api/v1/forbid", {}),
        ("POST", "/api/v1/echo", {"data": b" " * 2000, "headers": {"Content-Type": "application/json"}}),
        ("POST", "/api/v1/login", {"json": {"token": "x"}}),
        ("GET", "/api/v1/snapshot", {"headers": {"Host": "evil.example"}}),
    )
    async with signed_in(ROUTES) as (page, _):
        for method, path, options in asked:
            _, headers, _ = await page.request(method, path, **options)
            for name in HEADERS:
                assert name in headers, (path, name)
            assert headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
        async with page.session.get(f"{page.base}/api/v1/stream") as answer:
            assert answer.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
            assert answer.headers["Cache-Control"] == "no-store"
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


async def test_an_internal_error_is_logged_and_not_shown():
    async with signed_in(ROUTES) as (page, _):
        status, _, body = await page.request("GET", "/api/v1/fail")
        assert status == 500
        assert b"s3cret" not in body


async def test_a_refusal_of_the_cluster_comes_with_a_remedy():
    async with signed_in(ROUTES) as (page, _):
        status, _, body = await page.request("GET", "/api/v1/forbid")
        assert (status, message(body)) == (403, "nodes is forbidden")
        assert json.loads(body)["error"]["remedy"]


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "....//server.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "app/..%2f..%2fserver.py",
        "a%00b",
    ],
)
async def test_no_file_outside_the_page_is_served(path):
    async with bare_server() as (page, _):
        port = int(page.base.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /static/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))
        assert b"import" not in answer


async def test_the_page_is_the_first_file():
    async with bare_server() as (page, _):
        status, headers, body = await page.request("GET", "/")
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert b"<script>" not in body
        assert b"style=" not in body


def test_numbers_and_times_of_a_query_are_checked():
    query = Query({"limit": "5000", "offset": "-1", "from": "soon"})
    assert query.number("limit", 10, 200) == 200
    assert query.number("none", 10, 200) == 10
    with pytest.raises(Refused, match="offset=-1 is not a whole number"):
        query.number("offset", 0, 10)
    with pytest.raises(Refused, match="from=soon is not a time"):
        query.time("from", 0)


# bearer tokens and certificates


def token_access(asked, **options):
    async def check(token):
        asked.append(token)
        if token != "good":
            raise Refused(401, "The cluster does not accept this token.")
        return Viewer("alice", visible=frozenset({"spares"}))

    return Access(("127.0.0.1",), check=check, **options)


async def test_a_bearer_token_signs_in_and_is_not_in_the_cookie():
    asked = []
    async with bare_server(ROUTES, access=token_access(asked)) as (page, _):
        status, headers, body = await page.request("POST", "/api/v1/login", json={"token": "good"})
        assert (status, json.loads(body)) == (200, {"name": "alice"})
        assert "good" not in headers["Set-Cookie"]
        assert (await page.get("echo"))["viewer"] == "alice"
        assert asked == ["good"]
        await page.post("logout", {})
        assert (await page.request("GET", "/api/v1/echo"))[0] == 401


async def test_guessing_tokens_is_slowed_down():
    asked = []
    async with bare_server(access=token_access(asked)) as (page, _):
        answers = [(await page.request("POST", "/api/v1/login", json={"token": f"{n}"}))[0] for n in range(30)]
        assert set(answers) == {401, 429}
        assert len(asked) < 30


async def test_a_token_that_ends_ends_its_session(monkeypatch):
    monkeypatch.setattr("nodeyard.dashboard.access.CHECK_SECONDS", 0.0)
    valid = ["good"]

    async def check(token):
        if token not in valid:
            raise Refused(401, "The cluster does not accept this token.")
        return Viewer("alice")

    async with bare_server(ROUTES, access=Access((), check=check)) as (page, _):
        await page.post("login", {"token": "good"})
        assert (await page.get("echo"))["viewer"] == "alice"
        valid.clear()
        assert (await page.request("GET", "/api/v1/echo"))[0] == 401
        valid.append("good")
        assert (await page.request("GET", "/api/v1/echo"))[0] == 401


async def test_a_session_outlives_an_outage_of_the_api_server(monkeypatch):
    monkeypatch.setattr("nodeyard.dashboard.access.CHECK_SECONDS", 0.0)
    outage = []

    async def check(_token):
        if outage:
            raise TransportError("no answer", may_have_run=False)
        return Viewer("alice")

    async with bare_server(ROUTES, access=Access((), check=check)) as (page, _):
        await page.post("login", {"token": "good"})
        outage.append(True)
        assert (await page.get("echo"))["viewer"] == "alice"
        status, _, body = await page.request("POST", "/api/v1/login", json={"token": "good"})
        assert status == 502
        assert "no answer" in message(body)


async def test_a_viewer_sees_only_their_capabilities():
    feed = Feed(SystemClock())
    for name in ("spares", "pools"):
        feed.publish("operators", name, [OperatorInfo(capability=name, state="Running")])
    async with bare_server(access=token_access([]), feed=feed) as (page, _):
        await page.post("login", {"token": "good"})
        assert [each["capability"] for each in (await page.get("snapshot"))["operators"]] == ["spares"]
        async with page.stream(last=feed.seq) as next_event:
            feed.publish("operators", "pools", [])
            feed.publish("operators", "spares", [OperatorInfo(capability="spares", state="Gone")])
            _, _, data = await page.until(next_event, lambda name, data: data["operators"][0]["state"] == "Gone")
            assert len(data["operators"]) == 1


@pytest.fixture
def authority():
    return Authority()


@pytest.fixture
def tls(authority, tmp_path):
    authority.server("dash.example", "127.0.0.1").write(tmp_path, "server")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    return DashboardTls(tmp_path / "server.crt", tmp_path / "server.key", tmp_path / "ca.crt")


def trust(authority, tmp_path=None):
    context = ssl.create_default_context(cadata=authority.pem.decode())
    if tmp_path is not None:
        authority.client("carol").write(tmp_path, "client")
        context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    return context


async def test_a_client_certificate_reads_and_has_no_credentials(authority, tls, tmp_path):
    access = Access(certificate_names(tls.certificate), certified=Viewer("certificate"), is_secure=True)
    async with bare_server(ROUTES, access=access, context=server_context(tls)) as (page, _):
        page.ssl = trust(authority, tmp_path)
        assert (await page.get("snapshot"))["viewer"] == {"name": "carol"}
        page.ssl = trust(authority)
        other = Page(page.base, ssl=page.ssl)
        assert (await other.request("GET", "/api/v1/snapshot"))[0] == 401
        named = {"Host": "dash.example"}
        assert (await other.request("GET", "/", headers=named))[0] == 200
        await other.close()


async def test_a_certificate_of_another_authority_opens_nothing(authority, tls, tmp_path):
    access = Access((), certified=Viewer("certificate"), is_secure=True)
    async with bare_server(access=access, context=server_context(tls)) as (page, _):
        context = trust(authority)
        Authority("other").client("mallory").write(tmp_path, "foreign")
        context.load_cert_chain(tmp_path / "foreign.crt", tmp_path / "foreign.key")
        page.ssl = context
        with pytest.raises((ssl.SSLError, aiohttp.ClientError)):
            await page.request("GET", "/api/v1/snapshot")


async def test_the_cookie_of_a_secure_page_never_goes_out_in_clear(authority, tls):
    access = token_access([], is_secure=True)
    async with bare_server(access=access, context=server_context(tls)) as (page, _):
        page.ssl = trust(authority)
        _, headers, _ = await page.request("POST", "/api/v1/login", json={"token": "good"})
        assert "Secure" in headers["Set-Cookie"]


# the stream


async def test_a_stream_begins_with_a_snapshot_and_continues_with_events():
    async with signed_in() as (page, feed):
        feed.rows = {"n1": row("n1")}
        async with page.stream() as next_event:
            id, name, data = await next_event()
            assert (id, name) == (feed.seq, "snapshot")
            assert data["nodes"]["rows"] == [list(row("n1"))]
            feed.publish_nodes([row("n1", "claimed")], ["n2"])
            later, name, data = await next_event()
            assert (later, name) == (id + 1, "nodes")
            assert data["set"][0][7] == "claimed"
            assert data["delete"] == ["n2"]


async def test_a_stream_resumes_where_it_ended():
    async with signed_in() as (page, feed):
        feed.publish_nodes([row("n1")], [])
        seen = feed.seq
        feed.publish_nodes([row("n2")], [])
        feed.publish_nodes([row("n3")], [])
        async with page.stream(last=seen) as next_event:
            names = [(await next_event())[2]["set"][0][0] for _ in range(2)]
        assert names == ["n2", "n3"]


@pytest.mark.parametrize("last", [1, 10**18, "nonsense", -5])
async def test_a_stream_that_missed_too_much_gets_a_snapshot(last):
    async with signed_in() as (page, feed):
        for number in range(BACKLOG + 10):
            feed.publish_nodes([row(f"n{number}")], [])
        async with page.stream(last=last) as next_event:
            assert (await next_event())[1] == "snapshot"


async def test_events_are_sent_in_batches():
    async with signed_in() as (page, feed), page.stream() as next_event:
        await next_event()
        for number in range(200):
            feed.publish_nodes([row(f"n{number}")], [])
        began = asyncio.get_running_loop().time()
        for _ in range(200):
            await next_event()
        assert asyncio.get_running_loop().time() - began < 5


async def test_a_quiet_stream_has_a_heartbeat(monkeypatch):
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.3)
    async with signed_in() as (page, _), page.session.get(f"{page.base}/api/v1/stream") as answer:
        async with asyncio.timeout(10):
            while await answer.content.readline() != b": heartbeat\n":
                pass


async def test_a_stream_ends_with_its_session():
    async with bare_server(ROUTES, access=token_access([])) as (page, feed):
        await page.post("login", {"token": "good"})
        async with page.session.get(f"{page.base}/api/v1/stream") as answer:
            await answer.content.readline()
            await page.post("logout", {})
            feed.publish_nodes([row("n1")], [])
            async with asyncio.timeout(10):
                rest = await answer.content.read()
            assert b"event: nodes" not in rest


async def test_open_streams_do_not_delay_the_end_of_the_process():
    async with signed_in() as (page, _):
        stream = await page.session.get(f"{page.base}/api/v1/stream")
        await stream.content.readline()
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 3


async def test_a_browser_that_goes_ends_its_stream_and_is_no_error(caplog):
    async with signed_in() as (page, feed):
        answer = await page.session.get(f"{page.base}/api/v1/stream")
        await answer.content.readline()
        handlers = [
            each for each in asyncio.all_tasks() if each.get_coro().__qualname__ == RequestHandler.start.__qualname__
        ]
        answer.close()
        async with asyncio.timeout(10):
            while not any(each.done() for each in handlers):
                feed.publish_nodes([row("n1")], [])
                await asyncio.wait(handlers, timeout=0.1)
    assert handlers
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == []
