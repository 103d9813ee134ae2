"""List pages and watch events, decoded into the caller's type; what does not fit it is malformed."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from tests.builders.nested_json import with_nested

from nodeyard.client.decoder import Bookmark, EventDecoder, Malformed, Partial, WatchEvent, decode_page
from nodeyard.client.errors import Expired
from nodeyard.kube.json_depth import TOO_DEEP


class Item(msgspec.Struct):
    spec: dict[str, int]


def body(items, **metadata):
    return msgspec.json.encode({"kind": "WList", "metadata": metadata, "items": items})


def test_a_page_knows_its_version_and_the_next():
    page = decode_page(dict, body([{"a": 1}], resourceVersion="9", **{"continue": "tok"}))
    assert (page.items, page.resource_version, page.next) == ([{"a": 1}], "9", "tok")


def test_floats_near_the_limits_of_a_double_take_no_longer_than_others():
    floats = b"[" + b"1.7976931348623157e308," * 300_000 + b"1.5e300]"
    text = body([{"spec": "FLOATS"}], resourceVersion="9").replace(b'"FLOATS"', floats)

    began = time.process_time()
    page = decode_page(dict, text)

    assert time.process_time() - began < 1.0
    assert page.items[0]["spec"][-1] == 1.5e300


def test_the_last_page_has_no_next():
    assert decode_page(Item, body([{"spec": {"n": 1}}], resourceVersion="9")).next == ""


def test_a_list_whose_items_are_null_is_empty():
    assert decode_page(Item, body(None, resourceVersion="9")).items == []


def test_one_bad_object_leaves_the_others():
    bad = {"metadata": {"name": "bad", "resourceVersion": "4"}, "spec": {"n": "x"}}
    page = decode_page(Item, body([{"spec": {"n": 1}}, bad, {"spec": {"n": 2}}], resourceVersion="9"))
    assert [item.spec["n"] for item in page.items] == [1, 2]
    assert [(item.name, item.type) for item in page.malformed] == [("bad", "LISTED")]
    assert page.resource_version == "9"


def test_an_object_nested_too_deeply_leaves_the_others():
    deep = {"metadata": {"name": "deep", "resourceVersion": "4"}, "spec": {"n": "NESTED"}}
    listed = body([{"spec": {"n": 1}}, deep, {"spec": {"n": 2}}], resourceVersion="9")

    page = decode_page(Item, with_nested(listed, 5_000))

    assert [item.spec["n"] for item in page.items] == [1, 2]
    assert [(item.name, item.type, item.error) for item in page.malformed] == [("deep", "LISTED", TOO_DEEP)]
    assert page.resource_version == "9"


def test_too_deep_objects_and_malformed_ones_are_distinguished():
    deep = {"metadata": {"name": "deep"}, "spec": {"n": "NESTED"}}
    bad = {"metadata": {"name": "bad"}, "spec": {"n": "x"}}

    page = decode_page(Item, with_nested(body([deep, bad], resourceVersion="9"), 5_000))

    assert {item.name: item.error == TOO_DEEP for item in page.malformed} == {"deep": True, "bad": False}


def test_a_list_can_be_left_undecoded():
    page = decode_page(msgspec.Raw, body([{"spec": {"n": 1}}], resourceVersion="9"))
    assert [bytes(item) for item in page.items] == [b'{"spec":{"n":1}}']


class Meta(msgspec.Struct):
    name: str


class View(msgspec.Struct):
    metadata: Meta
    spec: dict[str, int]


def test_a_change_is_decoded_into_the_type_asked_for():
    line = b'{"type":"ADDED","object":{"kind":"W","metadata":{"name":"a","uid":"u"},"spec":{"n":1}}}'
    assert EventDecoder(View).decode(line) == WatchEvent("ADDED", View(Meta("a"), {"n": 1}))


def test_a_change_is_a_plain_dict_by_default():
    event = EventDecoder(dict).decode(b'{"type":"DELETED","object":{"metadata":{"name":"a"}}}')
    assert event == WatchEvent("DELETED", {"metadata": {"name": "a"}})


def test_the_type_need_not_come_first():
    event = EventDecoder(dict).decode(b'{"object":{"metadata":{"name":"a"}},"type":"MODIFIED"}')
    assert event == WatchEvent("MODIFIED", {"metadata": {"name": "a"}})


def test_a_bookmark_needs_only_metadata():
    line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"},"spec":{}}}'
    assert EventDecoder(View).decode(line) == Bookmark("7")


def test_the_last_initial_event_is_marked():
    line = (
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7",'
        b'"annotations":{"k8s.io/initial-events-end":"true"}}}}'
    )
    assert EventDecoder(View).decode(line) == Bookmark("7", ends_initial_events=True)


def test_an_error_event_is_raised_as_what_it_is():
    line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
    with pytest.raises(Expired, match="too old"):
        EventDecoder(View).decode(line)


def test_an_object_that_does_not_fit_poisons_only_itself():
    line = (
        b'{"type":"MODIFIED","object":{"metadata":{"namespace":"ns","name":"a","uid":"u","resourceVersion":"5"},'
        b'"spec":{"n":"one"}}}'
    )
    event = EventDecoder(View).decode(line)
    assert isinstance(event, Malformed)
    assert (event.type, event.namespace, event.name, event.uid, event.resource_version) == (
        "MODIFIED",
        "ns",
        "a",
        "u",
        "5",
    )
    assert "spec" in event.error


@pytest.mark.parametrize("order", [(b'"type":"ADDED"', b'"object":%s'), (b'"object":%s', b'"type":"ADDED"')])
@pytest.mark.parametrize("view", [dict, View, Partial])
def test_an_object_nested_too_deeply_poisons_only_itself(order, view):
    body = b'{"metadata":{"managedFields":["NESTED"],"name":"a","namespace":"ns","uid":"u"},"spec":{"n":"NESTED"}}'
    line = b"{%s}" % b",".join(order) % with_nested(body, 5_000)

    event = EventDecoder(view).decode(line)

    assert isinstance(event, Malformed)
    assert (event.type, event.namespace, event.name, event.uid) == ("ADDED", "ns", "a", "u")
    assert event.error == TOO_DEEP


@pytest.mark.parametrize("type", ["FOO", "", "added"])
def test_an_event_of_an_unknown_type_is_no_event(type):
    line = json.dumps({"type": type, "object": {"metadata": {"name": "a"}}}, separators=(",", ":")).encode()
    with pytest.raises(msgspec.DecodeError, match="the type of the event is unknown"):
        EventDecoder(View).decode(line)


def test_a_truncated_line_is_no_event():
    with pytest.raises(msgspec.DecodeError):
        EventDecoder(View).decode(b'{"type":"ADDED","object":{"metada')
