"""Recent kinds of lookups are watched as long as they are kept."""

import pytest

from nodeyard.client.resources import of_kind, untyped
from nodeyard.kube.objects import PartialObject
from nodeyard.runtime.capability import Watch
from nodeyard.watch.dynamic import MOST

from .harness import WIDGETS
from .test_dynamic import NODE_WATCH, FaultyTransport, make, refresh, register
from .test_dynamic import harness as harness  # a fixture

PATH = "/apis/example.dev/v1/widgets"


def sighted(view):
    return [Watch(of_kind(*each), metadata_only=True) for each in view.recent_kinds]


@pytest.fixture
async def view(harness):
    await harness.define_widgets()
    await make(harness, "a")
    view = register(harness, named=sighted)
    await harness.start()
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


async def test_an_evicted_kind_is_unwatched(view, harness, clock):
    view.record_lookup(WIDGETS)
    await clock.advance(1)
    assert str(WIDGETS) in harness.running

    for number in range(MOST):
        view.record_lookup(unheard_of(number))
    await clock.advance(1)

    assert str(WIDGETS) not in harness.running
    with pytest.raises(KeyError, match="not watched"):
        view.get("Widget.example.dev", "a")


async def test_a_kind_that_the_view_is_asked_for_is_not_evicted(view, harness, clock):
    view.record_lookup(WIDGETS)
    for number in range(MOST):
        view.get("Widget.example.dev", "a")
        view.record_lookup(unheard_of(number))
    await clock.advance(1)

    assert str(WIDGETS) in harness.running


async def test_a_kind_that_is_watched_anyway_is_not_kept_as_one_that_was_met(harness, clock):
    view = register(harness, NODE_WATCH, named=sighted)
    await harness.start()

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


async def test_a_forbidden_kind_is_reported_and_not_retried_hot(view, harness, clock):
    harness.tap.refused.add(PATH)
    attempts = []
    harness.tap.stream = counting(harness.tap, attempts)
    view.record_lookup(WIDGETS)
    await clock.advance(1)
    assert view.watch_error("Widget.example.dev").startswith("cannot watch widgets.example.dev: forbidden")

    await clock.advance(600)
    assert len(attempts) < 40
    harness.tap.refused.clear()
    await clock.advance(60)

    assert view.watch_error("Widget.example.dev") == ""
    assert view.get("Widget.example.dev", "a") is not None


def counting(tap, attempts):
    inner = FaultyTransport.stream.__get__(tap)

    def stream(request):
        if request.path == PATH:
            attempts.append(request.path)
        return inner(request)

    return stream


async def test_a_kind_that_is_met_later_does_not_make_the_process_unready(view, harness, clock):
    assert harness.informers.is_ready

    view.record_lookup(WIDGETS)

    assert not harness.informers.is_synced
    assert harness.informers.is_ready
    await refresh(harness, clock)
    assert harness.informers.is_synced
