"""Lists: selectors, pages, revisions, and the forms in which they come."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import METADATA_LIST, TABLE


@pytest.fixture
def three(http, configmaps) -> str:
    for name, labels in (("a", {"tier": "web"}), ("b", {"tier": "db"}), ("c", {"tier": "web", "old": "yes"})):
        assert http.post(configmaps, {"metadata": {"name": name, "labels": labels}}).status == 201
    return configmaps


def names(answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.json["items"]]


def test_a_list_is_ordered_by_name_and_knows_its_revision(http, three):
    answer = http.get(three)

    assert names(answer) == ["a", "b", "c"]
    assert answer.json["kind"] == "ConfigMapList"
    assert int(answer.json["metadata"]["resourceVersion"]) >= int(
        answer.json["items"][2]["metadata"]["resourceVersion"]
    )


def test_items_of_built_in_lists_carry_no_kind(http, three):
    assert all("kind" not in item and "apiVersion" not in item for item in http.get(three).json["items"])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=web", ["a", "c"]),
        ("tier==db", ["b"]),
        ("tier!=web", ["b"]),
        ("tier in (web,db),!old", ["a", "b"]),
        ("tier notin (web)", ["b"]),
        ("old", ["c"]),
        ("nothing=here", []),
    ],
)
def test_a_label_selector_narrows_a_list(http, three, selector, expected):
    assert names(http.get(three, query={"labelSelector": selector})) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [("metadata.name=b", ["b"]), ("metadata.name!=b", ["a", "c"]), ("metadata.namespace=nowhere", [])],
)
def test_a_field_selector_narrows_a_list(http, three, selector, expected):
    assert names(http.get(three, query={"fieldSelector": selector})) == expected


@pytest.mark.parametrize("selector", ["a b", "a in b", "=x", "a=(", "!", "a in (b"])
def test_a_label_selector_that_does_not_parse_is_a_bad_request(http, three, selector):
    answer = http.get(three, query={"labelSelector": selector})

    assert (answer.status, answer.reason) == (400, "BadRequest")


def test_a_field_that_cannot_be_selected_by_is_named(http, three):
    answer = http.get(three, query={"fieldSelector": "spec.x=1"})

    assert answer.status == 400
    assert answer.message == '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'


def test_pages_follow_each_other_and_count_down(http, three):
    first = http.get(three, query={"limit": 2})
    token = first.json["metadata"]["continue"]
    second = http.get(three, query={"limit": 2, "continue": token})

    assert names(first) + names(second) == ["a", "b", "c"]
    assert first.json["metadata"]["remainingItemCount"] == 1
    assert "continue" not in second.json["metadata"]


def test_pages_show_one_revision_whatever_happens_meanwhile(http, three):
    first = http.get(three, query={"limit": 1})
    http.delete(f"{three}/b")
    http.post(three, {"metadata": {"name": "bb"}})

    second = http.get(three, query={"limit": 5, "continue": first.json["metadata"]["continue"]})

    assert names(second) == ["b", "c"]
    assert second.json["metadata"]["resourceVersion"] == first.json["metadata"]["resourceVersion"]


def test_a_page_with_a_selector_does_not_say_how_many_remain(http, three):
    metadata = http.get(three, query={"limit": 1, "labelSelector": "tier=web"}).json["metadata"]

    assert metadata["continue"]
    assert "remainingItemCount" not in metadata


@pytest.mark.parametrize("token", ["xx", "bm90LWpzb24", "e30"])
def test_a_bad_continue_token_is_a_bad_request(http, three, token):
    answer = http.get(three, query={"continue": token})

    assert answer.status == 400
    assert "continue key is not valid" in answer.message


@pytest.mark.parametrize("limit", ["abc", "1.5"])
def test_a_limit_that_is_no_number_is_a_bad_request(http, three, limit):
    assert http.get(three, query={"limit": limit}).status == 400


@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
def test_a_number_beyond_64_bits_is_a_bad_request(http, three, name):
    answer = http.get(three, query={name: 2**63})

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == f'strconv.ParseInt: parsing "{2**63}": value out of range'


def test_a_list_at_any_revision_is_not_paged(http, three):
    answer = http.get(three, query={"resourceVersion": "0", "limit": 1})

    assert names(answer) == ["a", "b", "c"]
    assert "continue" not in answer.json["metadata"]


@pytest.mark.parametrize(
    ("revision", "status", "reason"), [("999999999", 504, "Timeout"), ("abc", 500, ""), ("-1", 500, "")]
)
def test_an_invalid_minimum_revision_of_a_get(http, three, revision, status, reason):
    answer = http.get(f"{three}/a", query={"resourceVersion": revision})

    assert (answer.status, answer.reason) == (status, reason)


def test_a_revision_that_is_no_number_is_a_bad_request(http, three):
    answer = http.get(three, query={"resourceVersion": "abc"})

    assert answer.status == 400
    assert answer.message.startswith('invalid resource version: resourceVersion: Invalid value: "abc"')


def test_a_revision_from_the_future_times_out(http, three):
    answer = http.get(three, query={"resourceVersion": "999999999"})

    assert (answer.status, answer.reason) == (504, "Timeout")
    assert answer.causes[0]["reason"] == "ResourceVersionTooLarge"


def test_an_exact_revision_shows_the_past(http, three):
    before = http.get(three).json["metadata"]["resourceVersion"]
    http.delete(f"{three}/a")

    answer = http.get(three, query={"resourceVersion": before, "resourceVersionMatch": "Exact"})

    assert names(answer) == ["a", "b", "c"]
    assert answer.json["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Sometimes", "resourceVersion": "1"},
        {"sendInitialEvents": "true"},
    ],
    ids=["match alone", "exact zero", "unknown match", "initial events"],
)
def test_options_that_contradict_each_other_are_invalid(http, three, query):
    answer = http.get(three, query=query)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.json["details"]["kind"] == "ListOptions"


def test_all_namespaces_are_listed_together(http, three, namespace):
    answer = http.get("/api/v1/configmaps", query={"labelSelector": "tier=db"})

    found = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in answer.json["items"]]
    assert (namespace, "b") in found


def test_a_list_can_be_metadata_only(http, three):
    answer = http.get(three, accept=METADATA_LIST)

    assert (answer.json["kind"], answer.json["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert set(answer.json["items"][0]) == {"kind", "apiVersion", "metadata"} or set(answer.json["items"][0]) == {
        "metadata"
    }


def test_a_list_can_be_a_table(http, three):
    table = http.get(three, accept=TABLE).json

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["a", 0], ["b", 0], ["c", 0]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_a_table_can_leave_the_objects_out(http, three):
    table = http.get(three, accept=TABLE, query={"includeObject": "None"}).json

    assert [row["object"] for row in table["rows"]] == [None, None, None]


def test_a_large_list_is_compressed_for_who_can_read_it(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "big"}, "data": {"k": "x" * 200_000}})

    packed = http.get(configmaps, headers={"Accept-Encoding": "gzip"})
    plain = http.get(configmaps)

    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.content) < 20_000 < len(plain.content)
