"""The store: revisions, order, history and compaction."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import CompactedError, Key, StaleError, Store

THINGS = GroupResource("example.com", "things")


def thing(name: str, namespace: str = "", **more) -> dict:
    metadata = {"name": name, "uid": f"uid-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    return {"kind": "Thing", "apiVersion": "example.com/v1", "metadata": metadata, **more}


def put(store: Store, obj: dict):
    metadata = obj["metadata"]
    expect = store.get(THINGS, metadata.get("namespace", ""), metadata["name"])
    return store.commit(THINGS, obj, {}, expect=expect)


def names(objects) -> list[str]:
    return [stored.key.name for stored in objects]


def test_every_commit_sets_a_new_revision_in_the_object():
    store = Store()

    first, second = put(store, thing("a")), put(store, thing("b"))

    assert second.revision == first.revision + 1 == store.revision
    assert second.object()["metadata"]["resourceVersion"] == str(second.revision)


def test_a_writer_with_an_older_version_conflicts():
    store = Store()
    read = put(store, thing("a"))
    put(store, thing("a", spec=1))

    with pytest.raises(StaleError):
        store.commit(THINGS, thing("a", spec=2), {}, expect=read)
    with pytest.raises(StaleError):
        store.remove(THINGS, read)


def test_creating_what_exists_is_stale():
    store = Store()
    put(store, thing("a"))

    with pytest.raises(StaleError):
        store.commit(THINGS, thing("a"), {}, expect=None)


def test_lists_are_ordered_as_keys_in_etcd():
    store = Store()
    for namespace in ("a", "a-b", "b"):
        put(store, thing("x", namespace))

    assert [stored.key.namespace for stored in store.list(THINGS)] == ["a-b", "a", "b"]
    assert [stored.key.namespace for stored in store.list(THINGS, "a")] == ["a"]


def test_the_past_can_be_listed():
    store = Store()
    put(store, thing("a"))
    put(store, thing("b"))
    then = store.revision
    put(store, thing("c"))
    put(store, thing("a", spec=1))
    store.remove(THINGS, store.get(THINGS, "", "b"))

    past = list(store.at(THINGS, then))

    assert names(past) == ["a", "b"]
    assert "spec" not in past[0].object()
    assert names(store.at(THINGS, then, after=Key("", "a"))) == ["b"]
    assert names(store.list(THINGS)) == ["a", "c"]


def test_history_is_what_happened_after_a_revision():
    store = Store()
    put(store, thing("a"))
    then = store.revision
    put(store, thing("a", spec=1))
    store.remove(THINGS, store.get(THINGS, "", "a"))

    assert [(event.type, event.stored.key.name) for event in store.since(THINGS, then)] == [
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


def test_history_is_bounded_by_number():
    store = Store(history_events=2)
    first = put(store, thing("a")).revision
    for number in range(3):
        put(store, thing("a", spec=number))

    with pytest.raises(CompactedError):
        store.since(THINGS, first)
    assert len(store.since(THINGS, store.revision - 2)) == 2


def test_history_is_bounded_by_size():
    store = Store(history_bytes=1000)
    first = put(store, thing("a", spec="x" * 600)).revision
    put(store, thing("a", spec="y" * 600))

    with pytest.raises(CompactedError):
        store.since(THINGS, first - 1)


def test_after_compaction_only_the_present_is_known():
    store = Store()
    before = put(store, thing("a")).revision
    put(store, thing("b"))
    store.compact()

    with pytest.raises(CompactedError):
        store.since(THINGS, before)
    assert store.since(THINGS, store.revision) == []
    assert names(store.list(THINGS)) == ["a", "b"]


def test_listeners_get_every_change_until_they_stop():
    store, heard = Store(), []
    stop = store.listen(lambda resource, event: heard.append((resource.plural, event.type)))

    put(store, thing("a"))
    store.remove(THINGS, store.get(THINGS, "", "a"))
    stop()
    put(store, thing("b"))

    assert heard == [("things", "ADDED"), ("things", "DELETED")]
