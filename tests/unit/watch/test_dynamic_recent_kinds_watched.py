"""Kinds that were met and are watched from then on, as long as they are among those that are kept."""

import pytest

from nodeyard.client.resources import of_kind, untyped
from nodeyard.kube.objects import PartialObject
from nodeyard.runtime.capability import Watch
from nodeyard.watch.dynamic import MOST

from .stages import WIDGETS
from .test_dynamic import NODE_WATCH, Tap, make, refresh, register
from .test_dynamic import stage as stage  # a fixture

PATH = "/apis/example.dev/v1/widgets"


def sighted(view):
    return [Watch(of_kind(*each), metadata_only=True) for each in view.recent_kinds]


@pytest.fixture
async def view(stage):
    await stage.define_widgets()
    await make(stage, "a")
    view = register(stage, named=sighted)
    await stage.start()
    return view


def unheard_of(number):
    return untyped("unheard.dev", "v1", f"things{number}", f"Thing{number}")


async def test_a_looked_up_kind_is_watched_as_metadata_without_a_declared_plural(view, clock):
    view.record_lookup(WIDGETS)
    await clock.advance(1)

    assert view.recent_kinds == (("example.dev/v1", "Widget"),)
    assert view.is_synced("Widget.example.dev")
    found = view.get("Widget.example.dev", "a")
    assert isinstance(found, PartialObject)
    assert found.metadata.name == "a"


async def test_an_evicted_kind_is_unwatched(view, stage, clock):
    view.record_lookup(WIDGETS)
    await clock.advance(1)
    assert str(WIDGETS) in stage.running

    for number in range(MOST):
        view.record_lookup(unheard_of(number))
    await clock.advance(1)

    assert str(WIDGETS) not in stage.running
    with pytest.raises(KeyError, match="not watched"):
        view.get("Widget.example.dev", "a")


async def test_a_kind_that_the_view_is_asked_for_is_not_evicted(view, stage, clock):
    view.record_lookup(WIDGETS)
    for number in range(MOST):
        view.get("Widget.example.dev", "a")
        view.record_lookup(unheard_of(number))
    await clock.advance(1)

    assert str(WIDGETS) in stage.running


async def test_a_kind_that_is_watched_anyway_is_not_kept_as_one_that_was_met(stage, clock):
    view = register(stage, NODE_WATCH, named=sighted)
    await stage.start()

    view.record_lookup(NODE_WATCH.resource)

    assert view.recent_kinds == ()


async def test_an_unserved_version_is_replaced_by_the_looked_up_one(view, clock):
    view.record_lookup(untyped("example.dev", "v0", "widgets", "Widget", namespaced=False))
    await clock.advance(60)
    assert view.all("Widget.example.dev") == ()

    view.record_lookup(WIDGETS)
    await clock.advance(1)

    assert view.recent_kinds == (("example.dev/v1", "Widget"),)
    assert view.get("Widget.example.dev", "a") is not None


async def test_a_forbidden_kind_is_reported_and_not_retried_hot(view, stage, clock):
    stage.tap.refused.add(PATH)
    attempts = []
    stage.tap.stream = counting(stage.tap, attempts)
    view.record_lookup(WIDGETS)
    await clock.advance(1)
    assert view.watch_error("Widget.example.dev").startswith("cannot watch widgets.example.dev: forbidden")

    await clock.advance(600)
    assert len(attempts) < 40
    stage.tap.refused.clear()
    await clock.advance(60)

    assert view.watch_error("Widget.example.dev") == ""
    assert view.get("Widget.example.dev", "a") is not None


def counting(tap, attempts):
    inner = Tap.stream.__get__(tap)

    def stream(request):
        if request.path == PATH:
            attempts.append(request.path)
        return inner(request)

    return stream


async def test_a_kind_that_is_met_later_does_not_make_the_process_unready(view, stage, clock):
    assert stage.informers.is_ready

    view.record_lookup(WIDGETS)

    assert not stage.informers.is_synced
    assert stage.informers.is_ready
    await refresh(stage, clock)
    assert stage.informers.is_synced
