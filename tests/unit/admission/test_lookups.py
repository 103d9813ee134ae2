"""Lookups of reviews: deadlines, shared requests, and confirmed misses."""

import asyncio
import json

import pytest

from nodeyard.admission.lookups import IN_FLIGHT, Lookups
from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog, Known
from nodeyard.client.errors import TransportError, TransportTimeout
from nodeyard.client.resources import NAMESPACES, untyped
from nodeyard.client.rest_mapper import MIN_INTERVAL_SECONDS, RESTMapper
from nodeyard.client.transport import Response
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import settle
from nodeyard.runtime.webhooks import Cause, Found, Missing, Unreadable

WIDGETS = untyped("example.dev", "v1", "widgets", "Widget")
PATH = "/apis/example.dev/v1/namespaces/shop/widgets/{}"
SOON = 5.0


class Answering:
    """Fake server with a response for each path, and a gate that delays responses."""

    def __init__(self):
        self.objects, self.errors, self.asked, self.accepted = {}, {}, [], []
        self.served = {"resources": []}
        self.gate = asyncio.Event()
        self.gate.set()
        self.at_once = self.most_at_once = 0

    async def send(self, request):
        self.asked.append(request.path)
        self.accepted.append(request.headers.get("Accept"))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._answer(request.path)
        finally:
            self.at_once -= 1

    async def _answer(self, path):
        if path == "/apis/example.dev/v1":
            return _said(200, self.served) if self.served else Response(404, {}, b"404 page not found")
        told = self.errors.get(path) or self.objects.get(path)
        await self.gate.wait()
        if isinstance(told, Exception):
            raise told
        if isinstance(told, Response):
            return told
        return _said(200, told) if told else _absent(path.rpartition("/")[2])


def _said(status, body):
    return Response(status, {}, json.dumps(body).encode())


def _absent(name):
    details = {"name": name, "kind": "widgets", "group": "example.dev"}
    return _status(404, "NotFound", f'widgets.example.dev "{name}" not found', details)


def _status(code, reason, message, details=None):
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details or {}}
    return _said(code, body)


class Served(RESTMapper):
    """Fake RESTMapper with the kinds of the test."""

    def know(self, *resources):
        self.catalog = Catalog(map(Known, resources))


@pytest.fixture
def server():
    return Answering()


@pytest.fixture
def known(clock):
    """Transport that lookups must not share, because they would queue behind writes."""
    known = Served(Client(None), clock)
    known.know(WIDGETS, NAMESPACES)
    return known


@pytest.fixture
def seen():
    return []


@pytest.fixture
async def lookups(server, known, seen):
    client = Client(server)
    made = Lookups(client, known, "give it by the label x", seen.append)
    yield made
    await made.close()


@pytest.fixture
def find(lookups):
    async def find(ref, seconds=SOON):
        return (await lookups.find([ref], asyncio.get_running_loop().time() + seconds))[ref]

    return find


def owner(name="a", uid="", **changed):
    ref = {"api_version": "example.dev/v1", "kind": "Widget", "name": name, "namespace": "shop", "uid": uid}
    return ObjectRef(**{**ref, **changed})


def stored(server, name="a", uid="1"):
    server.objects[PATH.format(name)] = {"metadata": {"name": name, "uid": uid}}


# results


async def test_an_object_that_is_there_is_found_by_its_metadata_and_its_kind_noted(server, find, seen):
    stored(server)

    found = await find(owner(uid="1"))

    assert isinstance(found, Found)
    assert found.object.metadata.uid == "1"
    assert server.accepted == ["application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"]
    assert [each.kind for each in seen] == ["Widget"]


async def test_an_object_of_another_uid_is_found_too_but_its_kind_is_not_noted(server, find, seen):
    stored(server, uid="2")

    assert (await find(owner(uid="1"))).object.metadata.uid == "2"
    assert seen == []


async def test_a_dry_run_does_not_note_the_kind(server, lookups, seen):
    stored(server)

    found = await lookups.find([owner(uid="1")], asyncio.get_running_loop().time() + SOON, is_trial=True)

    assert isinstance(found[owner(uid="1")], Found)
    assert seen == []


async def test_a_miss_is_asked_for_each_time(server, find):
    assert await find(owner()) == Missing()
    assert await find(owner()) == Missing()
    assert server.asked == [PATH.format("a")] * 2


async def test_a_cluster_scoped_owner_is_found_whatever_namespace_its_dependent_has(server, find):
    server.objects["/api/v1/namespaces/shop"] = {"metadata": {"name": "shop", "uid": "1"}}

    assert isinstance(await find(owner("shop", api_version="v1", kind="Namespace", namespace="shop")), Found)


async def test_a_namespaced_owner_of_something_without_a_namespace_is_missing(server, find):
    assert await find(owner(namespace="")) == Missing()
    assert server.asked == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "a%2fb", "x" * 300], ids=["none", "up", "path", "quoted", "long"])
async def test_an_invalid_name_is_missing_without_a_request(server, find, name):
    assert await find(owner(name)) == Missing()
    assert server.asked == []


async def test_a_right_that_is_missing_is_named_with_what_to_do(server, find):
    said = (
        'widgets.example.dev "a" is forbidden: User "nodeyard" cannot get resource "widgets" in API group "example.dev"'
    )
    server.errors[PATH.format("a")] = _status(403, "Forbidden", said)

    assert await find(owner()) == Unreadable(
        'may not get widgets.example.dev: User "nodeyard" cannot get resource "widgets" in API group "example.dev"; '
        "give it by the label x",
        Cause.FORBIDDEN,
    )


@pytest.mark.parametrize(
    ("fault", "cause", "text"),
    [
        (_status(500, "InternalError", "etcd is ill"), Cause.ERROR, "etcd is ill"),
        (Response(200, {}, b"<html>"), Cause.ERROR, "malformed"),
        (TransportError("cannot connect", may_have_run=False), Cause.ERROR, "cannot connect"),
        (TransportTimeout("no answer in 3 s", may_have_run=True), Cause.TIMEOUT, "no answer in 3 s"),
    ],
    ids=["5xx", "no JSON", "no connection", "timeout"],
)
async def test_a_server_error_is_unreadable_with_its_reason(server, find, fault, cause, text):
    server.errors[PATH.format("a")] = fault

    answer = await find(owner())

    assert answer.cause is cause
    assert answer.reason.startswith("cannot get widgets.example.dev: ")
    assert text in answer.reason


# deadlines and bounds


async def test_a_lookup_that_times_out_is_unreadable_and_the_others_are_answered(server, lookups, find):
    stored(server, "slow")
    server.gate.clear()
    slow, nonsense = owner("slow"), owner("..")

    answers = await lookups.find([slow, nonsense], asyncio.get_running_loop().time() + 0.01)

    assert answers[slow] == Unreadable(
        "cannot get Widget shop/slow: the API server did not answer in time", Cause.TIMEOUT
    )
    assert answers[nonsense] == Missing()


async def test_with_no_time_left_no_lookup_is_made(server, find):
    assert (await find(owner(), seconds=-1)).cause is Cause.TIMEOUT
    assert server.asked == []


async def test_concurrent_lookups_are_bounded(server, lookups):
    server.gate.clear()
    refs = [owner(f"w{number}") for number in range(3 * IN_FLIGHT)]
    looking = asyncio.create_task(lookups.find(refs, asyncio.get_running_loop().time() + SOON))
    await settle()
    assert server.at_once == IN_FLIGHT
    server.gate.set()

    answers = await looking

    assert set(answers.values()) == {Missing()}
    assert server.most_at_once == IN_FLIGHT


# sharing


async def test_reviews_that_want_the_same_object_at_once_share_a_request(server, find):
    stored(server)
    server.gate.clear()
    looking = [asyncio.create_task(find(owner(uid="1"))) for _ in range(10)]
    await settle()
    server.gate.set()

    assert {type(each) for each in await asyncio.gather(*looking)} == {Found}
    assert len(server.asked) == 1


async def test_a_lookup_after_a_request_was_sent_does_not_share_its_miss(server, find):
    server.gate.clear()
    early = asyncio.create_task(find(owner()))
    await settle()
    stored(server)
    late = asyncio.create_task(find(owner()))
    await asyncio.sleep(0)
    server.gate.set()

    assert await early == Missing()
    assert isinstance(await late, Found)
    assert len(server.asked) == 2


async def test_a_lookup_after_a_request_was_sent_does_not_share_its_older_object(server, find):
    stored(server, uid="1")
    server.gate.clear()
    early = asyncio.create_task(find(owner(uid="1")))
    await settle()
    stored(server, uid="2")
    late = asyncio.create_task(find(owner(uid="2")))
    await asyncio.sleep(0)
    server.gate.set()

    assert [each.object.metadata.uid for each in await asyncio.gather(early, late)] == ["1", "2"]


async def test_a_cancelled_review_does_not_cancel_the_request_of_others(server, find):
    stored(server)
    server.gate.clear()
    impatient = asyncio.create_task(find(owner(), seconds=0.01))
    patient = asyncio.create_task(find(owner()))

    assert (await impatient).cause is Cause.TIMEOUT
    server.gate.set()
    assert isinstance(await patient, Found)
    assert len(server.asked) == 1


# kinds


def serve(server, plural="widgets", kind="Widget", *, namespaced=True):
    server.served = {"resources": [{"name": plural, "kind": kind, "namespaced": namespaced, "verbs": ["get"]}]}


async def test_a_kind_that_was_installed_a_moment_ago_is_found(server, known, find):
    known.know()
    serve(server)
    stored(server)

    assert isinstance(await find(owner()), Found)
    assert server.asked == ["/apis/example.dev/v1", PATH.format("a")]


@pytest.mark.parametrize("served", [{"resources": []}, None], ids=["other kinds", "no such group"])
async def test_a_kind_that_is_not_served_is_unreadable(server, known, find, served):
    known.know()
    server.served = served

    assert await find(owner()) == Unreadable("the server does not serve Widget in example.dev/v1", Cause.NOT_SERVED)


async def test_a_kind_that_is_gone_is_not_mistaken_for_an_object_that_is(server, find):
    server.errors[PATH.format("a")] = _status(404, "NotFound", "the server could not find the requested resource")

    assert (await find(owner())).cause is Cause.NOT_SERVED


async def test_a_kind_that_has_got_another_plural_is_read_through_that(server, find):
    server.errors[PATH.format("a")] = Response(404, {}, b"404 page not found")
    serve(server, "widgetses")
    server.objects["/apis/example.dev/v1/namespaces/shop/widgetses/a"] = {"metadata": {"name": "a"}}

    assert isinstance(await find(owner()), Found)


async def test_a_version_that_is_not_served_any_more_is_read_through_another(server, find):
    stored(server)
    server.served = None

    assert isinstance(await find(owner(api_version="example.dev/v1beta1")), Found)


@pytest.mark.parametrize("api_version", ["", "/", "a/b/c", "example.dev/../x", "V1"])
async def test_an_invalid_api_version_is_not_served_without_a_request(server, find, api_version):
    assert (await find(owner(api_version=api_version))).cause is Cause.NOT_SERVED
    assert server.asked == []


async def test_unknown_kinds_do_not_cause_repeated_discovery(server, known, find, clock):
    known.know()
    assert (await find(owner())).cause is Cause.NOT_SERVED
    looking = [asyncio.create_task(find(owner(f"w{number}"))) for number in range(IN_FLIGHT)]
    await settle()
    assert len(server.asked) == 1
    serve(server)
    stored(server, "w1")

    await clock.advance(MIN_INTERVAL_SECONDS)
    answers = await asyncio.gather(*looking)

    assert server.asked.count("/apis/example.dev/v1") == 2
    assert isinstance(answers[1], Found)


async def test_closing_ends_all_tasks(server, known, lookups, clock):
    server.gate.clear()
    soon = asyncio.get_running_loop().time() + 0.01
    await lookups.find([owner("slow")], soon)
    known.know()
    for name in ("a", "b"):
        await lookups.find([owner(name)], asyncio.get_running_loop().time() + 0.01)
    assert [task for task in asyncio.all_tasks() if task.get_name() in ("read Widget", "discover a version")]

    await lookups.close()

    assert not [task for task in asyncio.all_tasks() if task.get_name() in ("read Widget", "discover a version")]
