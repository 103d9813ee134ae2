"""What is news to a plan that is being sent."""

from contextlib import contextmanager

from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.reconcile.expectations import Expectations

N1, N2 = (("Node.core", "", name) for name in ("n1", "n2"))
REF = ObjectRef(api_version="v1", kind="Node", name="n1")


@contextmanager
def following(news, key):
    """As long as a pass takes."""
    news.begin(key)
    try:
        yield
    finally:
        news.end(key)


def test_what_happens_while_it_is_planned_is_news():
    news = Expectations()
    with following(news, "a"):
        assert not news.is_outdated("a")
        news.observe("a", N1)
        assert news.is_outdated("a")
    assert not news.is_outdated("a")


def test_what_the_plan_itself_writes_is_none():
    news = Expectations()
    with following(news, "a"):
        news.expect_writes("a", [REF])
        news.observe("a", N1)
        assert not news.is_outdated("a")
        news.observe("a", N2)
        assert news.is_outdated("a")


def test_a_key_that_nobody_works_on_has_no_news_and_others_news_are_not_ours():
    news = Expectations()
    news.observe("a", N1)
    with following(news, "a"):
        news.observe("b", N1)
        assert not news.is_outdated("a")
        assert not news.is_outdated("b")


def due():
    told = []
    return told, Expectations(told.append)


def test_a_write_that_ends_as_it_was_foreseen_makes_nothing_due():
    told, news = due()
    with following(news, "a"):
        news.expect_writes("a", [REF], expected=[REF])
        assert news.observe("a", N1, "7") is False
        news.confirm("a", {N1: {"7"}})
    assert told == []


def test_a_change_after_the_foreseen_write_makes_the_key_due_when_the_pass_ends():
    told, news = due()
    with following(news, "a"):
        news.expect_writes("a", [REF], expected=[REF])
        news.observe("a", N1, "7")
        news.confirm("a", {N1: {"7"}})
        news.observe("a", N1, "8")
        assert told == []
    assert told == ["a"]


def test_a_foreseen_write_that_was_not_answered_makes_the_key_due():
    told, news = due()
    with following(news, "a"):
        news.expect_writes("a", [REF], expected=[REF])
        news.observe("a", N1, "7")
    assert told == ["a"]


def test_a_pass_that_fails_loses_no_change():
    told, news = due()
    news.begin("a")
    news.expect_writes("a", [REF], expected=[REF])
    news.observe("a", N1, "7")
    news.end("a")
    assert told == ["a"]


def test_a_write_of_which_the_outcome_is_not_known_beforehand_is_looked_at_again():
    told, news = due()
    with following(news, "a"):
        news.expect_writes("a", [REF])
        assert news.observe("a", N1, "7") is True
    assert told == []
