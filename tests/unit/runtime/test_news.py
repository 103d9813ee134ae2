"""What is news to a plan that is being sent."""

from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.news import News

N1, N2 = (("Node", "", name) for name in ("n1", "n2"))
REF = ObjectRef(api_version="v1", kind="Node", name="n1")


def test_what_happens_while_it_is_planned_is_news():
    news = News()
    with news.following("a"):
        assert not news.has("a")
        news.changed("a", N1)
        assert news.has("a")
    assert not news.has("a")


def test_what_the_plan_itself_writes_is_none():
    news = News()
    with news.following("a"):
        news.writes("a", [REF])
        news.changed("a", N1)
        assert not news.has("a")
        news.changed("a", N2)
        assert news.has("a")


def test_a_key_that_nobody_works_on_has_no_news_and_others_news_are_not_ours():
    news = News()
    news.changed("a", N1)
    with news.following("a"):
        news.changed("b", N1)
        assert not news.has("a")
        assert not news.has("b")
