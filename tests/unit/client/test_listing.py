"""List answers become pages."""

import msgspec

from nodeyard.client.listing import decode_page


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


def test_a_list_can_be_left_undecoded():
    page = decode_page(msgspec.Raw, body([{"spec": {"n": 1}}], resourceVersion="9"))
    assert [bytes(item) for item in page.items] == [b'{"spec":{"n":1}}']
