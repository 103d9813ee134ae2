"""The overlay shows our own writes at once, until the watch confirms them."""

import pytest

from nodeyard.client.decoder import Malformed
from nodeyard.kube.objects import Node
from nodeyard.kube.selectors import parse_labels
from nodeyard.watch.cache import Cache, Selection
from nodeyard.watch.indexes import Index

from .builders import node, wire

KEY = ("", "a")
LATER = 15.0


@pytest.fixture
def cache():
    cache = Cache(Node)
    cache.replace([node("a", 5, owner="none")], "5")
    return cache


def shown(cache):
    obj = cache.get(KEY)
    return None if obj is None else int(obj.metadata.resource_version)


def test_our_write_is_visible_at_once_also_in_indexes(cache):
    index = Index(lambda obj: [obj.metadata.labels["owner"]])
    cache.attach(index)
    cache.record_write(wire(node("a", 8, owner="us")), LATER)
    assert [obj.metadata.name for obj in index.find("us")] == ["a"]
    assert index.find("none") == ()
    assert cache.unconfirmed == 1


def test_an_older_event_does_not_undo_it(cache):
    cache.record_write(node("a", 8), LATER)
    cache.deliver(node("a", 7))
    assert (shown(cache), cache.unconfirmed) == (8, 1)


@pytest.mark.parametrize("version", [8, 9])
def test_the_watch_confirms_it_with_that_version_or_a_later_one(cache, version):
    cache.record_write(node("a", 8), LATER)
    cache.deliver(node("a", version))
    assert (shown(cache), cache.unconfirmed) == (version, 0)


def test_the_echo_of_our_write_is_no_change(cache):
    changes = []
    cache.listen(lambda change: changes.append(change.new))
    cache.record_write(node("a", 8), LATER)
    cache.deliver(node("a", 8))
    assert len(changes) == 1


def test_a_deletion_after_our_write_ends_it(cache):
    cache.record_write(node("a", 8), LATER)
    cache.deliver(node("a", 9), is_deleted=True)
    assert (shown(cache), cache.unconfirmed) == (None, 0)


def test_a_response_after_its_watch_event_changes_nothing(cache):
    cache.deliver(node("a", 8))
    cache.deliver(node("a", 9), is_deleted=True)
    cache.record_write(node("a", 8), LATER)
    assert (shown(cache), cache.unconfirmed) == (None, 0)


def test_an_answer_that_comes_during_a_relist_ends_with_its_list(cache):
    cache.clear()
    cache.record_write(node("a", 8), LATER)
    told = []
    cache.listen(lambda change: told.append((change.old is None, change.new)))
    cache.replace([], "9")
    assert (shown(cache), cache.unconfirmed, told) == (None, 0, [(False, None)])


def test_a_write_that_changed_nothing_is_not_laid_over(cache):
    cache.record_write(node("a", 5), LATER)
    assert cache.unconfirmed == 0


def test_answers_that_overtake_each_other_leave_the_newest(cache):
    cache.record_write(node("a", 9), LATER)
    cache.record_write(node("a", 8), LATER)
    assert shown(cache) == 9


def test_a_created_object_is_visible_before_the_watch_event(cache):
    cache.record_write(node("b", 8), LATER)
    assert cache.get(("", "b")) is not None
    cache.replace([node("a", 5)], "7")
    assert cache.get(("", "b")) is not None
    cache.replace([node("a", 5)], "8")
    assert cache.get(("", "b")) is None


def test_a_deleted_object_is_hidden_until_the_watch_event(cache):
    cache.record_deletion(KEY, "a", LATER)
    assert shown(cache) is None
    cache.deliver(node("a", 6))
    assert (shown(cache), cache.unconfirmed) == (None, 1)
    cache.deliver(node("a", 7), is_deleted=True)
    assert (shown(cache), cache.unconfirmed) == (None, 0)


def test_an_object_recreated_by_another_is_not_the_one_we_deleted(cache):
    cache.record_deletion(KEY, "a", LATER)
    cache.deliver(node("a", 8, uid="second"))
    assert (shown(cache), cache.unconfirmed) == (8, 0)


def test_deleting_a_missing_object_changes_nothing(cache):
    cache.deliver(node("a", 8, uid="second"))
    cache.record_deletion(KEY, "a", LATER)
    cache.record_deletion(("", "other"), "", LATER)
    assert (shown(cache), cache.unconfirmed) == (8, 0)


def test_a_late_response_does_not_restore_a_deleted_object(cache):
    cache.record_deletion(KEY, "a", LATER)
    cache.record_write(node("a", 8), LATER)
    assert shown(cache) is None


def test_a_deleted_object_may_be_recreated(cache):
    cache.record_deletion(KEY, "a", LATER)
    cache.record_write(node("a", 9, uid="second"), LATER)
    assert shown(cache) == 9
    cache.deliver(node("a", 8), is_deleted=True)
    assert shown(cache) == 9
    cache.deliver(node("a", 9, uid="second"))
    assert (shown(cache), cache.unconfirmed) == (9, 0)


@pytest.mark.parametrize(
    ("listed", "version", "expected", "left"),
    [
        ([node("a", 5)], "7", 8, 1),
        ([node("a", 8)], "8", 8, 0),
        ([node("a", 9)], "9", 9, 0),
        ([], "9", None, 0),
        ([], "7", 8, 1),
    ],
    ids=["older list", "same", "newer", "deleted since", "older list without it"],
)
def test_a_relist_is_compared_by_its_version(cache, listed, version, expected, left):
    cache.record_write(node("a", 8), LATER)
    cache.replace(listed, version)
    assert (shown(cache), cache.unconfirmed) == (expected, left)


@pytest.mark.parametrize(
    ("listed", "expected", "left"),
    [([node("a", 5)], None, 1), ([], None, 0), ([node("a", 8, uid="second")], 8, 0)],
    ids=["still listed", "gone", "made anew"],
)
def test_a_relist_ends_a_deletion_when_the_object_is_not_in_it(cache, listed, expected, left):
    cache.record_deletion(KEY, "a", LATER)
    cache.replace(listed, "9")
    assert (shown(cache), cache.unconfirmed) == (expected, left)


def test_a_bookmark_past_an_undelivered_write_ends_it(cache):
    cache.record_write(node("a", 8), LATER)
    cache.bookmark("7")
    assert shown(cache) == 8
    cache.bookmark("8")
    assert (shown(cache), cache.unconfirmed) == (5, 0)


def test_an_undecodable_watch_event_keeps_our_write(cache):
    cache.record_write(node("a", 8), LATER)
    cache.reject(Malformed("MODIFIED", "", "a", "a", "9", "bad"))
    cache.bookmark("10")
    assert (shown(cache), cache.unconfirmed) == (8, 0)


def test_a_write_is_overdue_at_its_deadline_and_a_get_confirms_it(cache):
    cache.record_write(node("a", 8), LATER)
    assert cache.overdue(LATER - 1) == []
    [(key, own)] = cache.overdue(LATER)
    cache.confirm(key, own, node("a", 11), 2 * LATER)
    assert (shown(cache), cache.overdue(LATER)) == (11, [])
    cache.deliver(node("a", 8))
    assert shown(cache) == 11
    cache.deliver(node("a", 11))
    assert cache.unconfirmed == 0


def test_a_get_without_result_hides_the_object_until_the_watch_event(cache):
    cache.record_write(node("a", 8), LATER)
    [(key, own)] = cache.overdue(LATER)
    cache.confirm(key, own, None, 2 * LATER)
    assert shown(cache) is None
    cache.deliver(node("a", 8))
    assert shown(cache) is None
    cache.deliver(node("a", 9), is_deleted=True)
    assert cache.unconfirmed == 0


def test_a_get_restores_an_object_whose_deletion_failed(cache):
    cache.record_deletion(KEY, "a", LATER)
    [(key, own)] = cache.overdue(LATER)
    cache.confirm(key, own, node("a", 7), 2 * LATER)
    assert shown(cache) == 7


def test_a_get_confirms_only_the_write_it_was_sent_for(cache):
    cache.record_write(node("a", 8), LATER)
    [(key, own)] = cache.overdue(LATER)
    cache.record_deletion(KEY, "a", 2 * LATER)
    cache.confirm(key, own, node("a", 8), 3 * LATER)
    assert shown(cache) is None
    cache.deliver(node("a", 9), is_deleted=True)
    cache.confirm(key, own, node("a", 8), 3 * LATER)
    assert shown(cache) is None


def test_a_write_that_leaves_the_selection_removes_the_object():
    cache = Cache(Node, Selection(parse_labels("spare=true"), takes_newcomers=True))
    cache.replace([node("a", 5, spare="true")], "5")
    cache.record_write(node("a", 8, spare="false"), LATER)
    assert shown(cache) is None
    cache.deliver(node("a", 8, spare="true"), is_deleted=True)
    assert cache.unconfirmed == 0


@pytest.mark.parametrize(("takes_newcomers", "expected"), [(True, 8), (False, None)])
def test_a_created_object_is_shown_only_where_labels_alone_select(takes_newcomers, expected):
    cache = Cache(Node, Selection(parse_labels("spare=true"), takes_newcomers=takes_newcomers))
    cache.record_write(node("a", 8, spare="true"), LATER)
    cache.record_write(node("b", 9, spare="false"), LATER)
    assert shown(cache) == expected
    assert cache.get(("", "b")) is None


def test_versions_that_are_no_numbers_confirm_only_themselves(cache):
    cache.record_write(node("a", "x1"), LATER)
    cache.deliver(node("a", "x0"))
    assert cache.get(KEY).metadata.resource_version == "x1"
    cache.deliver(node("a", "x1"))
    assert cache.unconfirmed == 0
