"""Facts about the server itself: queried only when wanted, reported when they change."""

import pytest

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog, Known
from nodeyard.client.resources import untyped
from nodeyard.client.rest_mapper import RESTMapper
from nodeyard.watch.server_info import ServerInfo


class Served:
    """A server and what it serves now; discovery answers at once."""

    def __init__(self, clock, asked):
        self.mapper = RESTMapper(Client(None), clock, lambda: asked.append("asked"))

    def serve(self, facts, catalog):
        self.mapper.catalog = catalog
        facts.notify()


def catalog(*versions):
    return Catalog([Known(untyped("example.dev", version, "widgets", "Widget")) for version in versions])


@pytest.fixture
def asked():
    return []


@pytest.fixture
def server(clock, asked):
    return Served(clock, asked)


@pytest.fixture
def facts(asked, server, clock):
    return ServerInfo(Client(None), clock, server.mapper, lambda: asked.append("asked"))


@pytest.fixture
def changes():
    return []


@pytest.fixture
def inquiry(facts, changes):
    return facts.register(lambda: changes.append("changed"))


def test_facts_are_not_requested_before_use(facts, server, asked, inquiry):
    assert inquiry.is_answered
    assert not facts.is_uid_asked
    assert not facts.are_versions_asked
    assert asked == []


def test_the_first_question_is_passed_on_and_no_other(facts, server, asked, inquiry):
    assert [inquiry.versions("example.dev", "Widget") for _ in range(3)] == [(), (), ()]
    assert (asked, facts.is_waited_for) == (["asked"], True)
    assert [inquiry.uid for _ in range(3)] == ["", "", ""]
    assert asked == ["asked", "asked"]


def test_an_answer_that_is_not_known_is_no_answer(facts, server, inquiry):
    inquiry.versions("example.dev", "Widget")
    assert not inquiry.is_answered
    server.serve(facts, catalog())
    assert inquiry.is_answered
    assert inquiry.versions("example.dev", "Widget") == ()


def test_versions_come_in_the_servers_order_and_once(facts, server, inquiry):
    server.serve(facts, Catalog([*catalog("v2", "v1").known, *catalog("v1").known]))
    assert inquiry.versions("example.dev", "Widget") == ("v2", "v1")
    assert inquiry.versions("example.dev", "Gadget") == ()


def test_a_changed_answer_is_reported(facts, server, inquiry, changes):
    server.serve(facts, catalog("v1"))
    inquiry.versions("example.dev", "Widget")
    server.serve(facts, catalog("v1"))
    assert changes == []
    server.serve(facts, catalog("v2", "v1"))
    server.serve(facts, catalog("v2", "v1"))
    assert changes == ["changed"]


def test_views_that_did_not_ask_are_not_notified(facts, server, inquiry, changes):
    facts.set_uid("u")
    server.serve(facts, catalog("v1"))
    assert changes == []


def test_a_new_uid_is_reported_to_its_users(facts, server, inquiry, changes):
    assert inquiry.uid == ""
    facts.set_uid("u")
    facts.set_uid("u")
    assert (changes, inquiry.uid) == (["changed"], "u")
