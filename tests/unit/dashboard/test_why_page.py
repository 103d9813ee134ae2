"""The page of `why` stands alone, shows the whole answer, and runs nothing that a cluster could put into it."""

from datetime import UTC, datetime
from html.parser import HTMLParser

from nodeyard.dashboard.why_page import render_page
from nodeyard.dashboard.wire import CandidateRow, Change, Note, Step, Why, WhyAnswer
from nodeyard.plan.model import ObjectRef

WEB = ObjectRef(api_version="nyallocator.cybozu.io/v1", kind="NodeTemplate", name="web")
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The tags, attributes and texts of a page; its tags must be balanced."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts += [data.strip()] if data.strip() else []


def answer(**more):
    given = {"by": "spares", "object": WEB, "sentence": "web lacks 1 of 3 nodes", "reason": "NoSpareNodesFound"}
    return Why(object=WEB, answers=(WhyAnswer(**{**given, **more}),))


def row(name, failed=None, message="m"):
    return CandidateRow(name=name, reason=failed or "Taken", message=message, is_taken=failed is None, failed=failed)


def test_it_has_the_sentence_the_time_and_the_notes():
    since = datetime(2030, 1, 1, tzinfo=UTC)
    texts = Page(
        render_page(answer(since=since, notes=(Note(reason="Stale", message="old"),)), "Operator: none.")
    ).texts
    for text in (
        "Why NodeTemplate web",
        "Operator: none.",
        ": web lacks 1 of 3 nodes",
        ": old",
        f"since {since.isoformat()}",
    ):
        assert text in texts


def test_the_ladder_names_the_rule_that_decided():
    steps = [("a", "passed"), ("b", "decided"), ("c", "notReached")]
    ladder = tuple(Step(reason=name, title=f"Rule {name}", state=state) for name, state in steps)
    texts = Page(render_page(answer(ladder=ladder))).texts
    told = [text for text in texts if text.startswith(("Rule ", "("))]
    assert told == ["Rule a", "(does not apply)", "Rule b", "(decided)", "Rule c", "(not reached)"]


def test_the_matrix_crosses_the_requirement_that_failed():
    rows = (row("n1"), row("n2", "NotReady"), row("n3", "Selector"))
    text = render_page(answer(candidates=rows, requirements=("NotReady", "Selector"), total=3))
    body = text.partition("<tbody>")[2]
    assert [line.count("failed") for line in body.splitlines()[1:4]] == [0, 1, 1]
    assert body.index("failed") > body.index("n2")
    assert "3 candidates" in Page(text).texts


def test_candidates_are_bounded_and_counted():
    why = answer(
        candidates=tuple(row(f"n{each}", "NotReady") for each in range(9)), requirements=("NotReady",), total=9
    )
    assert "and 4 more" in Page(render_page(why, most=5)).texts
    assert "n8" in Page(render_page(why, most=None)).texts


def test_commands_are_separate_for_copying():
    change = Change(message="Add a spare", command="kubectl label node n1 a=b")
    text = render_page(answer(would_change=(change,)))
    assert "<pre><code>kubectl label node n1 a=b</code></pre>" in text


def test_the_remedy_stands_before_hundreds_of_candidates():
    rows = tuple(row(f"n{each}", "NotReady") for each in range(500))
    change = Change(message="Add a spare", command="kubectl label node n1 a=b")
    text = render_page(answer(candidates=rows, requirements=("NotReady",), total=500, would_change=(change,)))
    assert text.index("Add a spare") < text.index("500 candidates")


def test_the_page_requests_and_runs_nothing():
    evil = "</td><script src=https://example.org></script><img src=x onerror=alert(1)>\x1b[2J"
    why = Why(
        object=WEB,
        answers=answer(
            sentence=evil,
            reason=evil,
            notes=(Note(reason=evil, message=evil),),
            ladder=(Step(reason="a", title=evil, state='decided" onclick="alert(1)'),),
            candidates=(row(evil, evil, evil),),
            requirements=(evil,),
            total=1,
            would_change=(Change(message=evil, command=evil),),
        ).answers,
    )
    text = render_page(why, evil)
    page = Page(text)
    assert not {"script", "img", "link", "iframe", "a"} & set(page.tags)
    assert not any(name.startswith("on") or name in ("src", "href") for name, _ in page.attributes)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert "\x1b" not in text
    assert "url(" not in text
