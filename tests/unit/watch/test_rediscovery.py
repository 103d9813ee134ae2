"""New kinds are discovered soon: after an event of their CRD, or by retries after a miss."""

from nodeyard.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.client.rest_mapper import DISCOVERY_SECONDS, FOLLOW_UP_SECONDS, SETTLED_SECONDS
from nodeyard.runtime.capability import Watch

from .harness import NODE_WATCH, WIDGETS


async def test_where_definitions_are_watched_a_new_kind_is_watched_at_once(harness, clock):
    harness.register(Watch(CUSTOM_RESOURCE_DEFINITIONS), Watch(WIDGETS, optional=True))
    await harness.start()
    await clock.advance(sum(FOLLOW_UP_SECONDS) + 1)
    await harness.define_widgets()
    await clock.advance(1)

    assert "widgets.example.dev" in harness.running


async def test_elsewhere_it_is_found_in_its_turn(harness, clock):
    harness.register(NODE_WATCH, Watch(WIDGETS, optional=True))
    await harness.start()
    await harness.define_widgets()
    await clock.advance(1)
    assert "widgets.example.dev" not in harness.running

    await clock.advance(DISCOVERY_SECONDS)

    assert "widgets.example.dev" in harness.running


def record_discoveries(harness, clock, monkeypatch):
    """Return the list of the times of discovery, which grows."""
    asked, discover = [], harness.client.catalog

    async def catalog():
        asked.append(clock.monotonic())
        return await discover()

    monkeypatch.setattr(harness.client, "catalog", catalog)
    return asked


async def test_discovery_is_rare_while_no_kind_is_missing(harness, clock, monkeypatch):
    await harness.define_widgets()
    asked = record_discoveries(harness, clock, monkeypatch)
    harness.register(NODE_WATCH, Watch(WIDGETS, optional=True))
    await harness.start()
    assert "widgets.example.dev" in harness.running
    asked.clear()

    await clock.advance(SETTLED_SECONDS - 5)
    assert asked == []
    await clock.advance(10)
    assert len(asked) == 1


async def test_discovery_is_frequent_while_a_kind_is_missing(harness, clock, monkeypatch):
    await harness.define_widgets()
    asked = record_discoveries(harness, clock, monkeypatch)
    harness.register(NODE_WATCH, Watch(WIDGETS, optional=True))
    await harness.start()
    await harness.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    await clock.advance(DISCOVERY_SECONDS + 1)
    assert "widgets.example.dev" not in harness.running
    asked.clear()
    await clock.advance(3 * DISCOVERY_SECONDS)
    assert len(asked) == 3

    await harness.define_widgets()
    await clock.advance(DISCOVERY_SECONDS + 1)
    assert "widgets.example.dev" in harness.running


async def test_versions_that_were_asked_for_are_looked_up_often_unless_definitions_are_watched(
    harness, clock, monkeypatch
):
    await harness.define_widgets()
    asked = record_discoveries(harness, clock, monkeypatch)
    view = harness.register(NODE_WATCH)
    await harness.start()
    view.versions("example.dev", "Widget")
    await clock.advance(1)
    assert view.versions("example.dev", "Widget") == ("v1",)
    asked.clear()
    await clock.advance(3 * DISCOVERY_SECONDS)
    assert len(asked) == 3

    harness.register(Watch(CUSTOM_RESOURCE_DEFINITIONS), Watch(API_SERVICES))
    await clock.advance(DISCOVERY_SECONDS + 1)
    asked.clear()
    await clock.advance(3 * DISCOVERY_SECONDS)
    assert asked == []
    await harness.serve_widgets_as("v2")
    await clock.advance(1)
    assert "v2" in view.versions("example.dev", "Widget")


async def test_a_missing_kind_that_is_asked_for_later_is_looked_up_often(harness, clock, monkeypatch):
    await harness.define_widgets()
    asked = record_discoveries(harness, clock, monkeypatch)
    view = harness.register(NODE_WATCH, Watch(CUSTOM_RESOURCE_DEFINITIONS), Watch(API_SERVICES))
    await harness.start()
    view.versions("example.dev", "Widget")
    await clock.advance(DISCOVERY_SECONDS + 1)
    view.versions("example.dev", "Gadget")
    await clock.advance(1)
    asked.clear()

    await clock.advance(3 * DISCOVERY_SECONDS)

    assert len(asked) == 3


async def test_after_an_invalidation_discovery_runs_a_few_times_then_periodically(harness, clock, monkeypatch):
    asked = record_discoveries(harness, clock, monkeypatch)
    harness.register(NODE_WATCH, Watch(WIDGETS, optional=True))
    await harness.start()
    await clock.advance(1)
    asked.clear()

    harness.informers.mapper.invalidate()
    await clock.advance(sum(FOLLOW_UP_SECONDS) + 2)
    assert len(asked) == 1 + len(FOLLOW_UP_SECONDS)
    await clock.advance(DISCOVERY_SECONDS / 2)

    assert len(asked) == 1 + len(FOLLOW_UP_SECONDS)


async def test_the_applier_uses_the_discovery_of_the_informers(harness):
    harness.register(NODE_WATCH, Watch(WIDGETS, optional=True))
    await harness.define_widgets()

    await harness.start()

    assert harness.informers.mapper.find("example.dev/v1", "Widget").plural == "widgets"
