"""List answers become pages."""

import msgspec
from tests.builders.nested import with_nested

from nodeyard.client.listing import decode_page
from nodeyard.kube.json_depth import TOO_DEEP


class View(msgspec.Struct):
    spec: dict[str, int]


def body(items, **metadata):
    return msgspec.json.encode({"kind": "WList", "metadata": metadata, "items": items})


def test_a_page_knows_its_version_and_the_next():
    page = decode_page(dict, body([{"a": 1}], resourceVersion="9", **{"continue": "tok"}))
    assert (page.items, page.resource_version, page.next) == ([{"a": 1}], "9", "tok")


def test_the_last_page_has_no_next():
    assert decode_page(View, body([{"spec": {"n": 1}}], resourceVersion="9")).next == ""


def test_a_list_whose_items_are_null_is_empty():
    assert decode_page(View, body(None, resourceVersion="9")).items == []


def test_one_bad_object_leaves_the_others():
    bad = {"metadata": {"name": "bad", "resourceVersion": "4"}, "spec": {"n": "x"}}
    page = decode_page(View, body([{"spec": {"n": 1}}, bad, {"spec": {"n": 2}}], resourceVersion="9"))
    assert [item.spec["n"] for item in page.items] == [1, 2]
    assert [(item.name, item.type) for item in page.malformed] == [("bad", "LISTED")]
    assert page.resource_version == "9"


def test_an_object_nested_too_deeply_leaves_the_others():
    deep = {"metadata": {"name": "deep", "resourceVersion": "4"}, "spec": {"n": "NESTED"}}
    listed = body([{"spec": {"n": 1}}, deep, {"spec": {"n": 2}}], resourceVersion="9")

    page = decode_page(View, with_nested(listed, 5_000))

    assert [item.spec["n"] for item in page.items] == [1, 2]
    assert [(item.name, item.type, item.error) for item in page.malformed] == [("deep", "LISTED", TOO_DEEP)]
    assert page.resource_version == "9"


def test_one_that_is_nested_too_deeply_and_one_that_does_not_fit_are_told_apart():
    deep = {"metadata": {"name": "deep"}, "spec": {"n": "NESTED"}}
    bad = {"metadata": {"name": "bad"}, "spec": {"n": "x"}}

    page = decode_page(View, with_nested(body([deep, bad], resourceVersion="9"), 5_000))

    assert {item.name: item.error == TOO_DEEP for item in page.malformed} == {"deep": True, "bad": False}


def test_a_list_can_be_left_undecoded():
    page = decode_page(msgspec.Raw, body([{"spec": {"n": 1}}], resourceVersion="9"))
    assert [bytes(item) for item in page.items] == [b'{"spec":{"n":1}}']
