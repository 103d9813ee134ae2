"""What stands is told once."""

from nodeyard.apply.standing import Standing
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Event

REF = ObjectRef(api_version="v1", kind="Node", name="n1", uid="u")
SHORT = Event(REF, "Warning", "Short", "two are missing", is_standing=True)
SHORTER = Event(REF, "Warning", "Short", "three are missing", is_standing=True)


def test_what_stands_is_told_once_however_often_it_is_said():
    standing = Standing()
    assert standing.fresh("a", [SHORT]) == [SHORT]
    assert standing.fresh("a", [SHORT]) == []


def test_what_stands_otherwise_is_told_again():
    standing = Standing()
    standing.fresh("a", [SHORT])
    assert standing.fresh("a", [SHORTER]) == [SHORTER]
    assert standing.fresh("a", [SHORT]) == [SHORT]


def test_what_ended_and_comes_back_is_told_again():
    standing = Standing()
    standing.fresh("a", [SHORT])
    assert standing.fresh("a", []) == []
    assert standing.fresh("a", [SHORT]) == [SHORT]


def test_keys_stand_each_for_themselves_and_are_forgotten():
    standing = Standing()
    standing.fresh("a", [SHORT])
    assert standing.fresh("b", [SHORT]) == [SHORT]
    standing.forget("a")
    assert standing.fresh("a", [SHORT]) == [SHORT]
