from nodeyard.apiserver.controllers.metadata import ObjectId, OwnerReference
from nodeyard.apiserver.controllers.ownership_graph import OwnershipGraph, unblocked
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Key


def thing(uid):
    return ObjectId(GroupResource("", "things"), Key("ns", uid), uid)


def owned_by(uid, *, blocks=None):
    return OwnerReference("v1", "Thing", uid, uid, block_owner_deletion=blocks)


def test_dependents_are_found_by_the_uid_of_their_owner():
    graph = OwnershipGraph()
    graph.replace(thing("child"), (owned_by("mother"), owned_by("father", blocks=True)))
    graph.replace(thing("other"), (owned_by("mother"),))
    assert [found.uid for found in graph.dependents("mother")] == ["child", "other"]
    assert [found.uid for found in graph.blocking_dependents("mother")] == []
    assert [found.uid for found in graph.blocking_dependents("father")] == ["child"]


def test_new_owners_replace_the_old_ones():
    graph = OwnershipGraph()
    graph.replace(thing("child"), (owned_by("mother"),))
    graph.replace(thing("child"), (owned_by("father"),))
    assert graph.dependents("mother") == []
    assert [owner.uid for owner in graph.owners("child")] == ["father"]


def test_an_object_without_owners_leaves_no_trace():
    graph = OwnershipGraph()
    graph.replace(thing("child"), (owned_by("mother"),))
    graph.replace(thing("child"), ())
    assert "child" not in graph
    assert graph.dependents("mother") == []
    assert graph.owners("child") == ()


def test_forgetting_answers_the_owners_that_were():
    graph = OwnershipGraph()
    graph.replace(thing("child"), (owned_by("mother"),))
    assert [owner.uid for owner in graph.forget("child")] == ["mother"]
    assert graph.forget("child") == ()


def test_an_owner_is_unblocked_when_the_reference_goes_or_no_longer_blocks():
    before = (owned_by("a", blocks=True), owned_by("b", blocks=True), owned_by("c"), owned_by("d", blocks=True))
    after = (owned_by("b", blocks=False), owned_by("d", blocks=True))
    assert unblocked(before, after) == ["a", "b"]
