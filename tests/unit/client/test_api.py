"""Requests of each verb, and the reading of the answers."""

from contextlib import asynccontextmanager

import msgspec
import pytest

from nodeyard.client.api import Client, DeleteOptions, PatchForm
from nodeyard.client.decoder import Bookmark, Malformed, WatchEvent
from nodeyard.client.errors import Conflict, Expired, NotFound, ServerError, TransportError
from nodeyard.client.resources import CONFIG_MAPS, LEASES, NODES, PODS
from nodeyard.client.transport import Response, Stream


class Recorder:
    """Transport that records requests and returns given responses."""

    def __init__(self, *answers, chunks=(), status=200):
        self.answers = list(answers)
        self.sent = []
        self.chunks = chunks
        self.status = status

    async def send(self, request):
        body = msgspec.json.decode(request.body) if request.body else None
        query, headers = dict(request.query), dict(request.headers)
        self.sent.append((request.method, request.path, query, headers, body, request.retry))
        answer = self.answers.pop(0) if self.answers else {}
        return answer if isinstance(answer, Response) else Response(200, {}, msgspec.json.encode(answer))

    @asynccontextmanager
    async def stream(self, request):
        self.sent.append((request.method, request.path, dict(request.query)))

        async def chunks():
            for chunk in self.chunks:
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk

        yield Stream(self.status, {}, chunks())

    @property
    def last(self):
        return self.sent[-1]


def status(code, reason, message=""):
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return Response(code, {}, msgspec.json.encode(body))


STRICT = {"fieldManager": "nodeyard", "fieldValidation": "Strict"}
JSON = {"Content-Type": "application/json"}


async def test_get_reads_one_object():
    recorder = Recorder({"metadata": {"name": "n"}})
    assert await Client(recorder).get(NODES, "n") == {"metadata": {"name": "n"}}
    assert recorder.last == ("GET", "/api/v1/nodes/n", {}, {}, None, True)


async def test_get_decodes_into_the_resources_type():
    class View(msgspec.Struct):
        kind: str

    recorder = Recorder({"kind": "Pod", "spec": {}})
    assert await Client(recorder).get(PODS.decoded_as(View), "p", "ns", subresource="status") == View("Pod")
    assert recorder.last[1] == "/api/v1/namespaces/ns/pods/p/status"


def test_a_namespaced_object_needs_its_namespace():
    with pytest.raises(ValueError, match="Pod p: the namespace is missing"):
        PODS.path("", "p")


async def test_an_error_is_raised():
    with pytest.raises(NotFound):
        await Client(Recorder(status(404, "NotFound"))).get(NODES, "n")


async def test_list_reads_all_pages_of_one_state():
    first = {"metadata": {"resourceVersion": "9", "continue": "tok"}, "items": [{"a": 1}]}
    second = {"metadata": {"resourceVersion": "9"}, "items": [{"a": 2}]}
    recorder = Recorder(first, second)
    page = await Client(recorder).list(PODS, "ns", labels="a=b", fields="spec.nodeName=n", size=1)
    assert ([each["a"] for each in page.items], page.resource_version, page.next) == ([1, 2], "9", "")
    selectors = {"labelSelector": "a=b", "fieldSelector": "spec.nodeName=n", "limit": "1"}
    assert [sent[2] for sent in recorder.sent] == [selectors, {**selectors, "continue": "tok"}]


async def test_listed_objects_have_their_kind_as_watched_ones_have():
    listed = {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "a"}}]}
    page = await Client(Recorder(listed)).list(CONFIG_MAPS)
    assert page.items == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]


async def test_a_list_restarts_without_pages_when_they_expired():
    first = {"metadata": {"resourceVersion": "9", "continue": "tok"}, "items": [{"a": 1}]}
    whole = {"metadata": {"resourceVersion": "12"}, "items": [{"a": 1}, {"a": 2}]}
    recorder = Recorder(first, status(410, "Expired"), whole)
    page = await Client(recorder).list(NODES)
    assert (len(page.items), page.resource_version) == (2, "12")
    assert "limit" not in recorder.last[2]


async def test_create_takes_the_namespace_from_the_object():
    recorder = Recorder({"ok": True})
    lease = {"metadata": {"name": "l", "namespace": "ns"}}
    assert await Client(recorder).create(LEASES, lease) == {"ok": True}
    path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
    assert recorder.last == ("POST", path, STRICT, JSON, lease, True)


async def test_every_write_can_be_a_dry_run():
    recorder = Recorder()
    client = Client(recorder, field_manager="me")
    await client.create(NODES, {"metadata": {"name": "n"}}, dry_run=True)
    assert recorder.last[2] == {"fieldManager": "me", "fieldValidation": "Strict", "dryRun": "All"}


@pytest.mark.parametrize(
    ("form", "content_type"),
    [
        (PatchForm.MERGE, "application/merge-patch+json"),
        (PatchForm.JSON, "application/json-patch+json"),
        (PatchForm.STRATEGIC, "application/strategic-merge-patch+json"),
    ],
)
async def test_a_patch_says_its_form(form, content_type):
    recorder = Recorder()
    await Client(recorder).patch(NODES, "n", {"spec": {}}, form=form, subresource="status")
    assert recorder.last == (
        "PATCH", "/api/v1/nodes/n/status", STRICT, {"Content-Type": content_type}, {"spec": {}}, True,
    )  # fmt: skip


async def test_apply_names_the_kind_and_may_force():
    recorder = Recorder()
    await Client(recorder).managed_by("nodeyard-pools").apply(LEASES, {"metadata": {"name": "l", "namespace": "ns"}})
    method, path, query, headers, body, _ = recorder.last
    assert (method, path) == ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l")
    assert query == {"fieldManager": "nodeyard-pools", "fieldValidation": "Strict"}
    assert headers == {"Content-Type": "application/apply-patch+yaml"}
    assert (body["apiVersion"], body["kind"]) == ("coordination.k8s.io/v1", "Lease")
    await Client(recorder).apply(LEASES, {"metadata": {"name": "l", "namespace": "ns"}}, force=True)
    assert recorder.last[2]["force"] == "true"


async def test_update_replaces_the_object():
    recorder = Recorder()
    await Client(recorder).update(NODES, {"metadata": {"name": "n", "resourceVersion": "3"}}, subresource="status")
    assert recorder.last[:3] == ("PUT", "/api/v1/nodes/n/status", STRICT)


async def test_delete_says_only_what_was_asked():
    recorder = Recorder()
    client = Client(recorder)
    await client.delete(NODES, "n")
    assert recorder.last == ("DELETE", "/api/v1/nodes/n", {}, JSON, {"kind": "DeleteOptions", "apiVersion": "v1"}, True)
    await client.delete(PODS, "p", "ns", DeleteOptions("u", "7", "Foreground", 0, dry_run=True))
    assert recorder.last[4] == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }


async def test_an_eviction_is_never_repeated_by_the_transport():
    recorder = Recorder()
    await Client(recorder).evict("p", "ns", grace_seconds=5, uid="u")
    method, path, _, _, body, retry = recorder.last
    assert (method, path, retry) == ("POST", "/api/v1/namespaces/ns/pods/p/eviction", False)
    assert body["deleteOptions"]["gracePeriodSeconds"] == 5
    assert body["deleteOptions"]["preconditions"] == {"uid": "u"}


async def test_a_part_of_an_object_is_created_under_it():
    recorder = Recorder({"kind": "Status"})
    await Client(recorder).create_part(PODS, "p", "binding", {"target": {"name": "n"}}, "ns")
    assert recorder.last[:2] == ("POST", "/api/v1/namespaces/ns/pods/p/binding")


async def test_warnings_are_decoded_to_plain_text():
    heard = []
    answer = Response(200, {}, b"{}", ('299 - "unknown field \\"spec.x\\""', "strange"))
    await Client(Recorder(answer), on_warning=heard.append).create(NODES, {"metadata": {"name": "n"}})
    assert heard == ['unknown field "spec.x"', "strange"]


async def test_every_answer_is_observed_also_a_refusal():
    seen = []
    client = Client(
        Recorder(status(409, "Conflict")),
        observe=lambda verb, what, code, _seconds, reason: seen.append((verb, what, code, reason)),
    )
    with pytest.raises(Conflict):
        await client.patch(NODES, "n", {})
    assert seen == [("patch", NODES, 409, "Conflict")]


def line(kind, obj):
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


async def watched(recorder, **options):
    async with Client(recorder).watch(PODS, **options) as events:
        return [event async for event in events]


async def test_watch_yields_events_until_the_server_ends_it():
    stream = line("ADDED", {"metadata": {"name": "a"}}) + line("BOOKMARK", {"metadata": {"resourceVersion": "8"}})
    recorder = Recorder(chunks=[stream[:20], stream[20:]])
    events = await watched(recorder, namespace="ns", labels="a=b", resource_version="5", seconds=300)
    assert events == [WatchEvent("ADDED", {"metadata": {"name": "a"}}), Bookmark("8")]
    assert recorder.last == (
        "GET",
        "/api/v1/namespaces/ns/pods",
        {
            "labelSelector": "a=b",
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "5",
            "timeoutSeconds": "300",
        },
    )


async def test_a_watch_may_begin_with_everything_there_is():
    recorder = Recorder()
    await watched(recorder, initial_events=True)
    assert recorder.last[2]["sendInitialEvents"] == "true"
    assert recorder.last[2]["resourceVersionMatch"] == "NotOlderThan"


async def test_a_watch_that_is_refused_raises_the_refusal():
    body = msgspec.json.encode({"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcd"})
    with pytest.raises(ServerError, match="etcd"):
        await watched(Recorder(chunks=[body], status=500))


async def test_an_error_event_ends_the_watch_with_its_error():
    stream = line("ADDED", {"metadata": {"name": "a"}}) + line("ERROR", {"kind": "Status", "code": 410})
    with pytest.raises(Expired):
        await watched(Recorder(chunks=[stream]))


@pytest.mark.parametrize("end", [b'{"type":"ADDED","obj', b"not json\n"], ids=["torn", "no json"])
async def test_a_broken_stream_is_an_error_of_the_transport(end):
    with pytest.raises(TransportError):
        await watched(Recorder(chunks=[line("ADDED", {}), end]))


@pytest.mark.parametrize(
    ("status", "says"),
    [(200, "watch of pods: a line is larger than 16 MiB"), (500, "watch of pods: the response is larger than 16 MiB")],
    ids=["an event", "a refusal"],
)
async def test_an_endless_line_in_a_watch_is_given_up(status, says):
    with pytest.raises(TransportError, match=f"^{says}$"):
        await watched(Recorder(chunks=[b"x" * (1 << 20)] * 20, status=status))


async def test_one_bad_object_does_not_end_the_watch():
    class View(msgspec.Struct):
        spec: dict[str, int]

    stream = line("ADDED", {"metadata": {"name": "bad"}, "spec": {"n": "x"}}) + line("ADDED", {"spec": {"n": 1}})
    async with Client(Recorder(chunks=[stream])).watch(PODS.decoded_as(View)) as events:
        bad, good = [event async for event in events]
    assert isinstance(bad, Malformed)
    assert good == WatchEvent("ADDED", View({"n": 1}))
