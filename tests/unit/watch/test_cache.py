"""The cache after events of the watch."""

import msgspec
import pytest

from nodeyard.client.decoder import Malformed
from nodeyard.kube.objects import Node
from nodeyard.runtime.capability import Aggregate
from nodeyard.watch.cache import Cache
from nodeyard.watch.indexes import Fold, Index

from .builders import node


@pytest.fixture
def cache():
    return Cache(Node)


@pytest.fixture
def seen(cache):
    changes = []
    cache.listen(lambda change: changes.append((change.old, change.new)))
    return changes


def errors(cache):
    return {key: each.error for key, each in cache.malformed.items()}


def malformed(name, version, error="bad", type="MODIFIED"):
    return Malformed(type, "", name, name, str(version), error)


def names(objects):
    return [obj.metadata.name for obj in objects]


def test_objects_come_by_namespace_and_name(cache):
    for name in ("b", "c", "a"):
        cache.deliver(node(name, 1))
    assert names(cache.all()) == ["a", "b", "c"]
    cache.deliver(node("ab", 4))
    assert names(cache.all()) == ["a", "ab", "b", "c"]


def test_a_change_names_the_object_and_its_version(cache):
    changes = []
    end = cache.listen(changes.append)
    cache.deliver(node("a", 1))
    cache.deliver(node("a", 2), is_deleted=True)
    end()
    cache.deliver(node("a", 3))
    assert [(change.key, change.version) for change in changes] == [(("", "a"), "1"), (("", "a"), "")]


def test_the_same_tuple_is_handed_out_until_something_changes(cache):
    cache.deliver(node("a", 1))
    first = cache.all()
    assert cache.all() is first
    cache.deliver(node("a", 2))
    assert cache.all() is not first
    assert first[0].metadata.resource_version == "1"


def test_listeners_get_the_old_and_the_new_object(cache, seen):
    one, two = node("a", 1), node("a", 2)
    cache.deliver(one)
    cache.deliver(two)
    cache.deliver(node("a", 3), is_deleted=True)
    assert seen == [(None, one), (one, two), (two, None)]


def test_a_relist_replaces_and_delivers_the_difference(cache, seen):
    for name in ("stays", "goes", "moves"):
        cache.deliver(node(name, 1))
    seen.clear()
    cache.replace([node("stays", 1), node("moves", 2), node("comes", 3)], "9")
    assert names(cache.all()) == ["comes", "moves", "stays"]
    assert sorted((old and old.metadata.name, new and new.metadata.name) for old, new in seen if old) == [
        ("goes", None),
        ("moves", "moves"),
    ]
    assert len(seen) == 3
    assert cache.version == "9"


def test_a_recreated_object_is_a_change(cache, seen):
    cache.deliver(node("a", 1, uid="first"))
    cache.replace([node("a", 1, uid="second")], "9")
    assert [new.metadata.uid for _, new in seen] == ["first", "second"]


def test_an_object_that_does_not_decode_leaves_the_last_one_that_did(cache, seen):
    cache.deliver(node("a", 1))
    cache.reject(malformed("a", 2))
    assert names(cache.all()) == ["a"]
    assert errors(cache) == {("", "a"): "bad"}
    assert seen[-1] == (cache.get(("", "a")), cache.get(("", "a")))
    assert cache.version == "2"


def test_the_next_decodable_version_clears_the_error(cache):
    cache.reject(malformed("a", 2))
    cache.deliver(node("a", 3))
    assert cache.malformed == {}


@pytest.mark.parametrize("is_known", [True, False])
def test_a_malformed_object_can_be_deleted(cache, is_known):
    if is_known:
        cache.deliver(node("a", 1))
    cache.reject(malformed("a", 2))
    cache.reject(malformed("a", 3, type="DELETED"))
    assert cache.malformed == {}
    assert cache.all() == ()


def test_a_relist_keeps_the_errors_of_what_is_listed_and_no_others(cache):
    cache.deliver(node("a", 1))
    cache.reject(malformed("gone", 2))
    cache.replace([node("b", 3)], "5", [malformed("a", 4, "worse", "LISTED")])
    assert errors(cache) == {("", "a"): "worse"}
    assert names(cache.all()) == ["a", "b"]


def test_an_object_that_an_index_rejects_is_malformed_and_nothing_is_half_updated(cache):
    count = Aggregate(
        name="count",
        kind="Node",
        empty=int,
        group=lambda _obj: ["all"],
        add=lambda total, _obj: total + 1,
        remove=lambda total, _obj: total - 1,
    )
    fold, zones = Fold(count), Index(lambda obj: [obj.metadata.labels["zone"]])
    cache.attach(fold)
    cache.attach(zones)
    cache.deliver(node("a", 1, zone="x"))
    cache.deliver(node("b", 2))
    assert errors(cache) == {("", "b"): "KeyError: 'zone'"}
    assert fold.value("all") == 1
    cache.deliver(node("b", 3, zone="x"))
    assert (fold.value("all"), names(zones.find("x")), errors(cache)) == (2, ["a", "b"], {})


def test_a_later_index_includes_existing_objects(cache):
    cache.deliver(node("a", 1, zone="x"))
    index = Index(lambda obj: [obj.metadata.labels["zone"]])
    cache.attach(index)
    assert names(index.find("x")) == ["a"]


def test_plain_dicts_are_kept_as_well():
    cache = Cache(dict)
    cache.deliver({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}})
    assert cache.get(("n", "a"))["metadata"]["name"] == "a"


def test_a_cache_without_a_reflector_is_empty_and_says_so(cache, seen):
    cache.deliver(node("a", 1))
    cache.record_write(node("b", 2), deadline=9)
    cache.clear()
    assert (cache.all(), cache.unconfirmed, cache.version) == ((), 0, "")
    assert [new for _, new in seen[-2:]] == [None, None]


def test_listeners_get_added_changed_and_removed_malformed_objects(cache):
    told = []
    cache.listen_malformed(lambda: told.append(sorted(cache.malformed)))
    cache.reject(malformed("a", 2))
    cache.reject(malformed("a", 3))
    assert told == [[("", "a")]]
    assert cache.malformed["", "a"].resource_version == "3"
    cache.reject(msgspec.structs.replace(malformed("a", 4), is_deleting=True))
    cache.reject(malformed("a", 5, type="DELETED"))
    assert told == [[("", "a")], [("", "a")], []]
