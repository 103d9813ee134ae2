"""The audit log: one event for each request, whatever its result."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.audit import to_file
from nodeyard.apiserver.server import Server
from nodeyard.apiserver.transport import Request, User, request
from nodeyard.process.clock import VirtualClock

ADMIN = User("admin", ("system:masters",), uid="1")
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def audited(clock: VirtualClock):
    """A server, and the events it has written."""
    events: list[dict] = []
    server = Server(clock, seed=1, audit=events.append)
    await server.start(())
    yield server, events
    await server.stop()


async def test_a_write_is_recorded_with_user_request_and_response(audited):
    server, events = audited
    await server.handle(request("POST", f"{CONFIGMAPS}?dryRun=All", {"metadata": {"name": "a"}}, user=ADMIN))

    (event,) = events
    assert event["requestURI"] == f"{CONFIGMAPS}?dryRun=All"
    assert event["verb"] == "create"
    assert event["user"] == {"username": "admin", "uid": "1", "groups": ["system:masters"]}
    assert event["objectRef"] == {
        "resource": "configmaps",
        "namespace": "default",
        "name": "a",
        "apiVersion": "v1",
    }
    assert event["responseStatus"] == {"metadata": {}, "code": 201}
    assert event["requestReceivedTimestamp"] == event["stageTimestamp"]
    assert "annotations" not in event


@pytest.mark.parametrize(
    ("url", "verb", "code"),
    [
        (CONFIGMAPS, "list", 200),
        (f"{CONFIGMAPS}?watch=true", "watch", 200),
        (f"{CONFIGMAPS}/a", "get", 404),
        ("/healthz", "get", 200),
        ("/nope", "get", 404),
    ],
)
async def test_reads_are_recorded_by_their_verb(audited, url, verb, code):
    server, events = audited
    response = await server.handle(request("GET", url, user=ADMIN))

    (event,) = events
    assert (event["verb"], event["responseStatus"]["code"]) == (verb, code)
    if response.stream is not None:
        await response.stream.aclose()


async def test_a_refusal_says_why(audited):
    server, events = audited
    await server.handle(request("GET", f"{CONFIGMAPS}/a", user=ADMIN))

    status = events[0]["responseStatus"]
    assert (status["status"], status["reason"]) == ("Failure", "NotFound")
    assert status["message"] == 'configmaps "a" not found'


async def test_an_unauthenticated_request_has_no_user_name(audited):
    server, events = audited
    await server.handle(Request("GET", CONFIGMAPS, headers={"authorization": "Bearer wrong", "user-agent": "me/1"}))

    (event,) = events
    assert (event["user"], event["responseStatus"]["code"], event["userAgent"]) == ({}, 401, "me/1")


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"metadata": 3}', b'{"metadata": {"name": 3}}'])
async def test_an_invalid_body_has_no_object_name(audited, body):
    server, events = audited
    await server.handle(request("POST", CONFIGMAPS, body, user=ADMIN))

    assert "name" not in events[0]["objectRef"]


async def test_a_file_gets_a_line_for_each_event(tmp_path):
    write = to_file(tmp_path / "audit.log")
    write({"verb": "get"})
    write({"verb": "list"})

    assert (tmp_path / "audit.log").read_text() == '{"verb":"get"}\n{"verb":"list"}\n'
