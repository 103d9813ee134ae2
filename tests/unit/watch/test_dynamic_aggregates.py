"""Aggregates of kinds declared at run time: present with the kind, exact after every change, and removed with it."""

import pytest

from nodeyard.process.clock import settle
from nodeyard.runtime.capability import Aggregate, Watch

from .builders import refusal
from .harness import COUNT, NODE_WATCH, WIDGETS
from .test_dynamic import harness as harness  # a fixture
from .test_dynamic import make, names, refresh, register

PATH = "/apis/example.dev/v1/widgets"


def weighing(by="colour", name="weight"):
    """Build an aggregate of weights; a new one for each declaration, as capabilities do."""
    return Aggregate(
        name=name,
        kind="Widget",
        empty=int,
        group=lambda obj: [obj["spec"][by]],
        add=lambda total, obj: total + obj["spec"]["weight"],
        remove=lambda total, obj: total - obj["spec"]["weight"],
    )


def weighed(*aggregates):
    return Watch(WIDGETS, aggregates=aggregates or (weighing(),))


async def test_an_aggregate_is_there_when_its_kind_is_named_and_follows_every_change(harness, clock):
    await harness.define_widgets()
    await make(harness, "a", colour="red", weight=1)
    view = register(harness)
    await harness.start()
    harness.named = [weighed()]
    assert view.aggregate("weight", "red") == 0, "found at once, though nothing has been told yet"
    await clock.advance(1)
    assert view.aggregate("weight", "red") == 1
    await make(harness, "b", colour="red", weight=2)
    assert view.aggregate("weight", "red") == 3
    await harness.client.patch(WIDGETS, "a", {"spec": {"colour": "blue", "weight": 5}})
    await harness.client.delete(WIDGETS, "b")
    await settle()
    assert (view.aggregate("weight", "red"), view.aggregate("weight", "blue")) == (0, 5)


async def test_objects_that_are_already_cached_are_in_it_at_once(harness, clock):
    await harness.define_widgets()
    await make(harness, "a", colour="red", weight=1)
    harness.register(Watch(WIDGETS, optional=True))
    view = register(harness)
    await harness.start()
    harness.named = [weighed()]
    assert view.aggregate("weight", "red") == 1


async def test_it_is_exact_after_everything_was_listed_again(harness, clock, monkeypatch):
    await harness.define_widgets()
    for name in "abc":
        await make(harness, name, colour="red", weight=1)
    view = register(harness)
    harness.named = [weighed()]
    await harness.start()
    harness.informers.pause()
    await clock.advance(1)
    await harness.client.delete(WIDGETS, "a")
    await harness.client.patch(WIDGETS, "b", {"spec": {"colour": "blue"}})
    await make(harness, "d", colour="red", weight=7)
    expired, stream = [], harness.tap.stream

    def once(request):
        if request.path == PATH and not expired:
            expired.append(request.query["resourceVersion"])
            raise refusal(410)
        return stream(request)

    monkeypatch.setattr(harness.tap, "stream", once)
    harness.informers.resume()
    await clock.advance(5)
    assert expired not in ([], [""]), "the watch went on from where it was, and could not"
    assert names(view.all("Widget")) == ["b", "c", "d"]
    assert (view.aggregate("weight", "red"), view.aggregate("weight", "blue")) == (8, 1)


async def test_it_is_removed_and_rebuilt_with_its_kind(harness, clock):
    await harness.define_widgets()
    await make(harness, "a", colour="red", weight=1)
    view = register(harness)
    harness.named = [weighed()]
    await harness.start()
    harness.named = []
    await refresh(harness, clock)
    with pytest.raises(KeyError, match='no aggregate "weight"'):
        view.aggregate("weight", "red")
    await make(harness, "b", colour="red", weight=2)
    harness.named = [weighed()]
    await refresh(harness, clock)
    assert view.aggregate("weight", "red") == 3


async def test_an_aggregate_ends_with_its_declaration_even_if_its_kind_stays(harness, clock):
    await harness.define_widgets()
    folded = []
    counting = Aggregate("folded", "Widget", int, lambda obj: [folded.append(obj) or "all"], max, min)
    harness.register(Watch(WIDGETS, optional=True))
    register(harness)
    harness.named = [weighed(counting)]
    await harness.start()
    harness.named = []
    await refresh(harness, clock)
    folded.clear()
    await make(harness, "a", colour="red", weight=1)
    assert folded == []


async def test_an_aggregate_of_the_same_identity_is_kept_and_another_one_is_built_from_the_cache(harness, clock):
    await harness.define_widgets()
    await make(harness, "a", colour="red", shape="round", weight=1)
    folded = []

    def add(total, obj):
        folded.append(obj)
        return total + 1

    harness.by = "colour"

    def named(_view):
        by = harness.by
        group = lambda obj: [obj["spec"][by]]  # noqa: E731
        count = Aggregate("count", "Widget", int, group, add, lambda n, _obj: n - 1)
        return [Watch(WIDGETS, aggregates=(count,), identity=by)]

    view = register(harness, named=named)
    await harness.start()
    folded.clear()
    for _ in range(3):
        await refresh(harness, clock)
    assert folded == []
    harness.by = "shape"
    await refresh(harness, clock)
    assert (view.aggregate("count", "red"), view.aggregate("count", "round")) == (0, 1)


async def test_an_object_that_it_cannot_take_is_left_out_and_there_all_the_same(harness, clock):
    await harness.define_widgets()
    await make(harness, "bare")
    await make(harness, "light", colour="red")
    await make(harness, "red", colour="red", weight=1)
    view = register(harness)
    harness.named = [weighed()]
    await harness.start()
    assert (names(view.all("Widget")), view.aggregate("weight", "red")) == (["bare", "light", "red"], 1)
    await harness.client.delete(WIDGETS, "bare")
    await harness.client.patch(WIDGETS, "light", {"spec": {"weight": 3}})
    await settle()
    assert (names(view.all("Widget")), view.aggregate("weight", "red")) == (["light", "red"], 4)


async def test_the_first_of_two_equal_names_wins_and_the_existing_one_before_both(harness, clock):
    await harness.define_widgets()
    await make(harness, "a", colour="red", shape="round", weight=1)
    await harness.make_node("n", zone="x")
    watch = Watch(NODE_WATCH.resource, indexes=NODE_WATCH.indexes, aggregates=(COUNT,))
    view = register(harness, watch)
    harness.named = [weighed(weighing("colour"), weighing("colour", COUNT.name)), weighed(weighing("shape"))]
    await harness.start()
    assert (view.aggregate("weight", "red"), view.aggregate("weight", "round")) == (1, 0)
    assert (view.aggregate(COUNT.name, "x"), view.aggregate(COUNT.name, "red")) == (1, 0)
