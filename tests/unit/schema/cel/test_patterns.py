"""Patterns: what can run away is given to RE2, everything else to `re`."""

from __future__ import annotations

import pytest

from nodeyard.schema.cel import EvaluationError
from nodeyard.schema.cel.patterns import can_explode, compile_pattern


@pytest.mark.parametrize("source", [r"^(a+)+$", r"(a|ab)*c", r"^([a-z]+\.)*$", r"(x{2,}){3,}", r"((a?)b)*", r"(\(a*)+"])
def test_a_choice_repeated_without_bound_can_explode(source: str) -> None:
    assert can_explode(source)


@pytest.mark.parametrize(
    "source", [r"^[a-z]([-a-z0-9]*[a-z0-9])?$", r"a+b*c?", r"[(*]+", r"\(a*\)+", r"\Q(a+)+\E", r"(abc)+", r"(a*){2}"]
)
def test_the_common_patterns_cannot(source: str) -> None:
    assert not can_explode(source)


def test_a_pattern_that_would_never_end_ends() -> None:
    assert compile_pattern(r"^(a+)+$").matches("a" * 40 + "!") is False


@pytest.mark.parametrize(
    ("source", "text", "matches"),
    [(r"^(a+)+$", "aaa", True), (r"^([a-z]+\.)*$", "a.b.", True), (r"^([a-z]+\.)*$", "a.b", False)],
)
def test_re2_and_re_agree(source: str, text: str, matches: bool) -> None:
    assert compile_pattern(source).matches(text) is matches


def test_what_is_no_pattern_is_said_in_the_words_of_go() -> None:
    with pytest.raises(EvaluationError, match=r"^error parsing regexp: missing closing \): `\(a`$"):
        compile_pattern("(a")


def test_no_match_is_found_where_there_is_none_even_by_an_explosive_pattern() -> None:
    assert compile_pattern(r"(a+)+!").find_all("a" * 40) == []


def test_finding_with_swapped_greediness_is_refused() -> None:
    with pytest.raises(EvaluationError, match="unsupported flag"):
        compile_pattern("(?U)a+").find_all("aa")
