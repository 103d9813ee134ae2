"""New kinds are found soon: where their definitions are watched, and in a few looks after one was missed."""

from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.client.rest_mapper import DISCOVERY_SECONDS, FOLLOW_UP_SECONDS
from nodeyard.runtime.capability import Watch

from .stages import NODE_WATCH, WIDGETS


async def test_where_definitions_are_watched_a_new_kind_is_watched_at_once(stage, clock):
    stage.register(Watch(CUSTOM_RESOURCE_DEFINITIONS), Watch(WIDGETS, optional=True))
    await stage.start()
    await clock.advance(sum(FOLLOW_UP_SECONDS) + 1)
    await stage.define_widgets()
    await clock.advance(1)

    assert "widgets.example.dev" in stage.running


async def test_elsewhere_it_is_found_in_its_turn(stage, clock):
    stage.register(NODE_WATCH, Watch(WIDGETS, optional=True))
    await stage.start()
    await stage.define_widgets()
    await clock.advance(1)
    assert "widgets.example.dev" not in stage.running

    await clock.advance(DISCOVERY_SECONDS)

    assert "widgets.example.dev" in stage.running


async def test_after_a_hurry_the_server_is_asked_a_few_times_and_then_in_its_turn_again(stage, clock, monkeypatch):
    asked, discover = [], stage.client.catalog

    async def catalog():
        asked.append(clock.monotonic())
        return await discover()

    monkeypatch.setattr(stage.client, "catalog", catalog)
    stage.register(NODE_WATCH, Watch(WIDGETS, optional=True))
    await stage.start()
    await clock.advance(1)
    asked.clear()

    stage.watches.mapper.invalidate()
    await clock.advance(sum(FOLLOW_UP_SECONDS) + 2)
    assert len(asked) == 1 + len(FOLLOW_UP_SECONDS)
    await clock.advance(DISCOVERY_SECONDS / 2)

    assert len(asked) == 1 + len(FOLLOW_UP_SECONDS)


async def test_what_the_informers_have_found_out_the_applier_need_not_ask(stage):
    stage.register(NODE_WATCH, Watch(WIDGETS, optional=True))
    await stage.define_widgets()

    await stage.start()

    assert stage.watches.mapper.find("example.dev/v1", "Widget").plural == "widgets"
