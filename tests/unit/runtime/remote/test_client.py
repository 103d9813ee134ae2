"""The client of an untrusted cluster: bounded memory, and no quoted error texts."""

import asyncio
import json
from contextlib import asynccontextmanager

import msgspec
import pytest

from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.watched import LeafPod
from nodeyard.client import api
from nodeyard.client.errors import Expired, Forbidden, TransportError
from nodeyard.client.resources import NODES
from nodeyard.client.transport import Response, Stream
from nodeyard.process.clock import settle
from nodeyard.runtime.remote import client as remote_client
from nodeyard.runtime.remote.client import MemoryBudget, MemoryUse, RemoteClient, weight
from nodeyard.runtime.remote.transport import EVENT_BYTES, RemoteTransport

TREE_NODES = NODES.decoded_as(TreeNode)
MANY = {f"{number}": "x" for number in range(300)}


def node(number, **labels):
    return {"metadata": {"name": f"n{number}", "resourceVersion": f"{number}", "labels": labels or MANY}}


def refusal(code, **fields):
    return json.dumps({"kind": "Status", "code": code, "message": "s3cret", **fields}).encode()


class Wire:
    """Fake server with given responses."""

    def __init__(self):
        self.answers = []
        self.lines = []
        self.asked = []

    async def send(self, request):
        self.asked.append(dict(request.query))
        status, body = self.answers.pop(0)
        return Response(status, {}, body)

    @asynccontextmanager
    async def stream(self, _request):
        async def chunks():
            for line in self.lines:
                yield line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"

        yield Stream(200, {}, chunks())


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture
def said():
    return []


@pytest.fixture
def memory_use(monkeypatch, said):
    monkeypatch.setattr(remote_client, "KEPT_BYTES", 1 << 20)
    return MemoryUse(said.append)


@pytest.fixture
def client(wire, memory_use):
    return RemoteClient(wire, memory_use=memory_use)


async def watched(client, **options):
    async with client.watch(TREE_NODES, **options) as events:
        return [event async for event in events]


@pytest.mark.parametrize("kind", [TreeNode, LeafPod])
def test_many_tiny_values_count_with_their_memory(kind):
    none, tiny, long = (
        weight(msgspec.convert({"metadata": {"labels": labels}}, kind)) for labels in ({}, MANY, {"a": "x" * 9999})
    )

    # A dict with 300 texts of one character takes 100 bytes for each, at least.
    assert tiny - none > len(MANY) * 100
    assert 9999 < long - none < 11_000


async def test_a_streamed_list_is_weighed_before_it_is_whole(client, wire, said):
    wire.lines = [{"type": "ADDED", "object": node(number)} for number in range(200)]

    with pytest.raises(TransportError, match="sends more objects than are kept of one cluster, 1 MiB"):
        await watched(client, initial_events=True)

    assert len(said) == 1


async def test_a_page_is_weighed_before_it_is_whole(client, wire, said):
    page = {"metadata": {"continue": "more"}, "items": [node(number) for number in range(100)]}
    wire.answers = [(200, json.dumps(page).encode())] * 3

    with pytest.raises(TransportError, match="sends more objects"):
        await client.list(TREE_NODES)

    assert wire.asked[0]["limit"] == "100"


@pytest.mark.parametrize(
    ("items", "why"),
    [
        (b"{}," * 30_000 + b"{}", "has more than 10000 objects"),
        (b"1," * 40_000 + b"1", "is not a list of objects"),
        (b"[" * 40_000 + b"]" * 40_000, "is not a list of objects"),
    ],
    ids=["tiny", "numbers", "deep"],
)
async def test_a_page_of_countless_objects_is_refused_undecoded(client, wire, monkeypatch, items, why):
    monkeypatch.setattr(api, "decode_page", lambda *_: pytest.fail("it is decoded"))
    wire.answers = [(200, b'{"metadata":{},"items":[%s]}' % items)]

    with pytest.raises(TransportError, match=why):
        await client.list(TREE_NODES)


async def test_the_memory_of_caches_is_checked_after_each_change(client, wire, memory_use):
    wire.lines = [{"type": "ADDED", "object": node(number, a="b")} for number in range(3)]
    assert len(await watched(client)) == 3
    memory_use.kept = lambda: 2 << 20

    with pytest.raises(TransportError, match="sends more objects"):
        await watched(client)


async def test_a_discovery_is_limited_over_all_its_requests(client, wire, said):
    groups = [{"name": f"g{number}", "versions": [{"version": "v1"}]} for number in range(50)]
    part = {"resources": [{"name": "x" * (1 << 20), "kind": "X", "namespaced": True}]}
    documents = [{"versions": []}, {"groups": groups}, *[part] * len(groups)]
    wire.answers = [(200, json.dumps(each).encode()) for each in documents]

    with pytest.raises(TransportError, match="discovery has more than 4 MiB"):
        await client.catalog()
    await settle()

    assert said == ["it sends more objects than are kept of one cluster: discovery has 4 MiB and more"]
    assert len(wire.asked) < 10


async def test_what_discovery_found_counts_for_the_memory(client, wire, memory_use, said):
    memory_use.kept = lambda: client.catalog_bytes
    small, large = ([{"name": f"x{each}", "kind": "X", "namespaced": True} for each in range(n)] for n in (9, 9999))
    for resources in (small, large):
        wire.answers += [
            (200, json.dumps(each).encode()) for each in ({"versions": ["v1"]}, {}, {"resources": resources})
        ]

    assert len((await client.catalog()).known) == 9
    with pytest.raises(TransportError, match="sends more objects than are kept of one cluster, 1 MiB"):
        await client.catalog()

    assert len(said) == 1


async def test_a_list_that_is_over_does_not_count_for_the_next(client, wire, said):
    page = {"metadata": {}, "items": [node(number) for number in range(20)]}
    wire.answers = [(200, json.dumps(page).encode())] * 5

    for _ in range(5):
        assert len((await client.list(TREE_NODES)).items) == 20

    assert said == []


async def test_an_object_that_is_not_understood_is_kept_in_short_or_not_at_all(client, wire):
    broken = {"metadata": {"name": "n1", "labels": 7, "finalizers": ["x" * 9999]}}
    wire.lines = [{"type": "ADDED", "object": broken}]

    (event,) = await watched(client)

    assert weight(event) < remote_client.MALFORMED_BYTES
    wire.lines = [{"type": "ADDED", "object": {"metadata": {"name": "n" * 9999, "labels": 7}}}]
    with pytest.raises(TransportError, match="that is too long to be valid"):
        await watched(client)


async def test_a_servers_error_text_is_not_passed_on(client, wire):
    wire.answers = [(403, refusal(403, reason="s3cret", details={"causes": [{"message": "s3cret"}]}))]

    with pytest.raises(Forbidden) as caught:
        await client.get(NODES, "n1")

    assert str(caught.value) == "the server answered 403"
    assert "s3cret" not in repr(caught.value.status)


async def test_a_servers_watch_error_text_is_not_passed_on(client, wire):
    wire.lines = [{"type": "ERROR", "object": json.loads(refusal(410, reason="Expired"))}]

    with pytest.raises(Expired) as caught:
        await watched(client)

    assert str(caught.value) == "the server answered 410 Expired"


async def test_a_line_is_no_longer_than_an_event_can_be(wire):
    line = RemoteTransport("leaf", lambda: None)
    await line.attach(wire)
    wire.lines = [b"x" * (1 << 20)] * ((EVENT_BYTES >> 20) + 1)

    with pytest.raises(TransportError, match="a watch event is larger than 4 MiB"):
        await watched(RemoteClient(line))


# all clusters together


class Caches:
    """Fake caches of one cluster with a given size."""

    def __init__(self, budget):
        self.refusals = []
        self.memory_use = MemoryUse(self.refusals.append, budget)
        self.size = 0
        self.memory_use.kept = lambda: self.size

    def grow(self, size):
        self.size = size
        self.memory_use.check()


def test_above_the_memory_bound_only_the_largest_cluster_is_refused():
    budget = MemoryBudget(10 << 20)
    small, large, other = Caches(budget), Caches(budget), Caches(budget)
    small.grow(2 << 20)
    large.grow(5 << 20)

    other.grow(4 << 20)

    assert large.refusals == ["it sends more objects than are kept of all clusters together, 10 MiB, and most of them"]
    assert small.refusals == other.refusals == []
    with pytest.raises(TransportError, match="all clusters together"):
        large.grow(1)
    large.memory_use.forget()
    large.grow(1)
    other.grow(7 << 20)
    assert small.refusals == other.refusals == []


async def test_the_others_wait_until_what_was_kept_of_the_heaviest_is_forgotten(wire):
    budget = MemoryBudget(10 << 20)
    other, large = Caches(budget), Caches(budget)
    wire.lines = [{"type": "ADDED", "object": node(1, a="b")}] * 2
    events = []

    async def read():
        async with RemoteClient(wire, memory_use=other.memory_use).watch(TREE_NODES) as stream:
            async for event in stream:
                events.append(event)
                if len(events) == 1:
                    other.size = 5 << 20

    large.grow(6 << 20)
    reading = asyncio.create_task(read())
    await settle()
    assert large.refusals
    assert len(events) == 1
    large.memory_use.forget()
    await reading
    assert len(events) == 2


def test_the_heaviest_cluster_itself_is_refused_at_once():
    budget = MemoryBudget(10 << 20)
    first, second = Caches(budget), Caches(budget)
    first.grow(4 << 20)

    with pytest.raises(TransportError, match="all clusters together"):
        second.grow(7 << 20)

    assert len(second.refusals) == 1
    assert first.refusals == []


def test_a_list_being_read_counts_for_the_memory_bound():
    budget = MemoryBudget(3 << 20)
    caches = Caches(budget)
    caches.grow(2 << 20)

    with pytest.raises(TransportError, match="all clusters together"):
        caches.memory_use.add("list", ["x" * (1 << 20)])


def test_a_cluster_that_is_not_named_any_more_counts_for_nothing():
    budget = MemoryBudget(10 << 20)
    gone, other = Caches(budget), Caches(budget)
    gone.grow(8 << 20)
    gone.memory_use.forget()

    other.grow(9 << 20)

    assert gone.refusals == other.refusals == []


def test_half_of_the_memory_of_the_container_is_for_clusters(monkeypatch, tmp_path):
    (limit := tmp_path / "memory.max").write_text("1048576\n")
    (none := tmp_path / "none").write_text("max\n")

    assert remote_client.memory_limit([limit, none, tmp_path / "missing"]) == 1 << 20
    assert remote_client.memory_limit([none]) == remote_client.memory_limit([])
    monkeypatch.setattr(remote_client, "memory_limit", lambda: 8 << 20)
    caches = Caches(MemoryBudget())
    caches.grow(4 << 20)
    with pytest.raises(TransportError, match="all clusters together, 4 MiB"):
        caches.grow((4 << 20) + 1)
