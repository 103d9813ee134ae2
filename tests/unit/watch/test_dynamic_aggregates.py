"""Aggregates of kinds that are named while the watches run: there with the kind, exact after every change, and gone
with it."""

import pytest

from nodeyard.process.clock import settle
from nodeyard.runtime.capability import Aggregate, Watch

from .builders import refusal
from .stages import COUNT, NODE_WATCH, WIDGETS
from .test_dynamic import make, names, refresh, register
from .test_dynamic import stage as stage  # a fixture

PATH = "/apis/example.dev/v1/widgets"


def weighing(by="colour", name="weight"):
    """The sum of weights; made anew each time, as whoever names watches makes it."""
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


async def test_an_aggregate_is_there_when_its_kind_is_named_and_follows_every_change(stage, clock):
    await stage.define_widgets()
    await make(stage, "a", colour="red", weight=1)
    view = register(stage)
    await stage.start()
    stage.named = [weighed()]
    assert view.aggregate("weight", "red") == 0, "found at once, though nothing has been told yet"
    await clock.advance(1)
    assert view.aggregate("weight", "red") == 1
    await make(stage, "b", colour="red", weight=2)
    assert view.aggregate("weight", "red") == 3
    await stage.client.patch(WIDGETS, "a", {"spec": {"colour": "blue", "weight": 5}})
    await stage.client.delete(WIDGETS, "b")
    await settle()
    assert (view.aggregate("weight", "red"), view.aggregate("weight", "blue")) == (0, 5)


async def test_objects_that_are_already_cached_are_in_it_at_once(stage, clock):
    await stage.define_widgets()
    await make(stage, "a", colour="red", weight=1)
    stage.register(Watch(WIDGETS, optional=True))
    view = register(stage)
    await stage.start()
    stage.named = [weighed()]
    assert view.aggregate("weight", "red") == 1


async def test_it_is_exact_after_everything_was_listed_again(stage, clock, monkeypatch):
    await stage.define_widgets()
    for name in "abc":
        await make(stage, name, colour="red", weight=1)
    view = register(stage)
    stage.named = [weighed()]
    await stage.start()
    stage.informers.pause()
    await clock.advance(1)
    await stage.client.delete(WIDGETS, "a")
    await stage.client.patch(WIDGETS, "b", {"spec": {"colour": "blue"}})
    await make(stage, "d", colour="red", weight=7)
    expired, stream = [], stage.tap.stream

    def once(request):
        if request.path == PATH and not expired:
            expired.append(request.query["resourceVersion"])
            raise refusal(410)
        return stream(request)

    monkeypatch.setattr(stage.tap, "stream", once)
    stage.informers.resume()
    await clock.advance(5)
    assert expired not in ([], [""]), "the watch went on from where it was, and could not"
    assert names(view.all("Widget")) == ["b", "c", "d"]
    assert (view.aggregate("weight", "red"), view.aggregate("weight", "blue")) == (8, 1)


async def test_it_is_removed_and_rebuilt_with_its_kind(stage, clock):
    await stage.define_widgets()
    await make(stage, "a", colour="red", weight=1)
    view = register(stage)
    stage.named = [weighed()]
    await stage.start()
    stage.named = []
    await refresh(stage, clock)
    with pytest.raises(KeyError, match='no aggregate "weight"'):
        view.aggregate("weight", "red")
    await make(stage, "b", colour="red", weight=2)
    stage.named = [weighed()]
    await refresh(stage, clock)
    assert view.aggregate("weight", "red") == 3


async def test_an_aggregate_ends_with_its_declaration_even_if_its_kind_stays(stage, clock):
    await stage.define_widgets()
    folded = []
    counting = Aggregate("folded", "Widget", int, lambda obj: [folded.append(obj) or "all"], max, min)
    stage.register(Watch(WIDGETS, optional=True))
    register(stage)
    stage.named = [weighed(counting)]
    await stage.start()
    stage.named = []
    await refresh(stage, clock)
    folded.clear()
    await make(stage, "a", colour="red", weight=1)
    assert folded == []


async def test_an_aggregate_of_the_same_identity_is_kept_and_another_one_is_built_from_the_cache(stage, clock):
    await stage.define_widgets()
    await make(stage, "a", colour="red", shape="round", weight=1)
    folded = []

    def add(total, obj):
        folded.append(obj)
        return total + 1

    stage.by = "colour"

    def named(_view):
        by = stage.by
        group = lambda obj: [obj["spec"][by]]  # noqa: E731
        count = Aggregate("count", "Widget", int, group, add, lambda n, _obj: n - 1)
        return [Watch(WIDGETS, aggregates=(count,), identity=by)]

    view = register(stage, named=named)
    await stage.start()
    folded.clear()
    for _ in range(3):
        await refresh(stage, clock)
    assert folded == []
    stage.by = "shape"
    await refresh(stage, clock)
    assert (view.aggregate("count", "red"), view.aggregate("count", "round")) == (0, 1)


async def test_an_object_that_it_cannot_take_is_left_out_and_there_all_the_same(stage, clock):
    await stage.define_widgets()
    await make(stage, "bare")
    await make(stage, "light", colour="red")
    await make(stage, "red", colour="red", weight=1)
    view = register(stage)
    stage.named = [weighed()]
    await stage.start()
    assert (names(view.all("Widget")), view.aggregate("weight", "red")) == (["bare", "light", "red"], 1)
    await stage.client.delete(WIDGETS, "bare")
    await stage.client.patch(WIDGETS, "light", {"spec": {"weight": 3}})
    await settle()
    assert (names(view.all("Widget")), view.aggregate("weight", "red")) == (["light", "red"], 4)


async def test_the_first_of_two_equal_names_wins_and_the_existing_one_before_both(stage, clock):
    await stage.define_widgets()
    await make(stage, "a", colour="red", shape="round", weight=1)
    await stage.make_node("n", zone="x")
    watch = Watch(NODE_WATCH.resource, indexes=NODE_WATCH.indexes, aggregates=(COUNT,))
    view = register(stage, watch)
    stage.named = [weighed(weighing("colour"), weighing("colour", COUNT.name)), weighed(weighing("shape"))]
    await stage.start()
    assert (view.aggregate("weight", "red"), view.aggregate("weight", "round")) == (1, 0)
    assert (view.aggregate(COUNT.name, "x"), view.aggregate(COUNT.name, "red")) == (1, 0)
