"""The language of --assert."""

import pytest

from nodeyard.rehearsal.assertions import AssertionSyntaxError, parse_assertion

FACTS = {"evicted": 12.0, "ready": 0.95, "seconds": 5400.0, "converged": 1.0}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("evicted < 50", True),
        ("evicted < 12", False),
        ("ready >= 0.9 and evicted <= 12", True),
        ("seconds <= 1.5h", True),
        ("seconds < 90m", False),
        ("not converged or evicted == 0", False),
        ("(evicted + 8) / 2 * 3 == 30", True),
        ("evicted - 2 - 3 == 7", True),
        ("-evicted < 0", True),
        ("evicted / 0 > 1000000", True),
        ("converged", True),
    ],
)
def test_an_assertion_compares_facts(text, holds):
    assert parse_assertion(text, FACTS).holds(FACTS) is holds


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "ends too early"),
        ("evicted <", "ends too early"),
        ("evicted < 5 6", '"6.0" is not expected'),
        ("(evicted < 5", '")" is missing'),
        ("evictd < 5", 'no fact "evictd"; there are: converged, evicted'),
        ("__import__('os')", "cannot read"),
        ("__import__(evicted)", 'no fact "__import__"'),
        ("evicted.real", "cannot read '.real'"),
        ("5x < 3", "cannot read '5x < 3'"),
        ("evicted < 'a'", "cannot read"),
        ("1" * 301, "at most 300 characters"),
        ("(" * 21 + "1", "at most 20 parentheses"),
    ],
)
def test_anything_else_is_a_clear_error(text, error):
    with pytest.raises(AssertionSyntaxError, match=error.replace("(", r"\(").replace(")", r"\)")):
        parse_assertion(text, FACTS)
