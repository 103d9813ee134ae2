"""Patterns match as in Go's regexp package; all expectations were produced by it."""

from __future__ import annotations

import time

import pytest

from nodeyard.schema.patterns import PatternError, compile_pattern


def matches(pattern: str, *texts: str) -> list[str]:
    found = compile_pattern(pattern)
    return [text for text in texts if found.matches(text)]


@pytest.mark.parametrize(
    ("pattern", "texts", "expected"),
    [
        ("^a$", ["a", "a\n", "ba"], ["a"]),
        ("(?m)^b$", ["a\nb\nc", "ab"], ["a\nb\nc"]),
        ("a.b", ["axb", "a\nb"], ["axb"]),
        ("(?s)a.b", ["axb", "a\nb"], ["axb", "a\nb"]),
        (r"^\s$", [" ", "\v", "\t", "\u00a0"], [" ", "\t"]),
        (r"^\S$", ["\v", " "], ["\v"]),
        (r"^\d$", ["5", "\u0665"], ["5"]),
        (r"^\w$", ["a", "_", "é"], ["a", "_"]),
        (r"^\W$", ["é", "a"], ["é"]),
        (r"\bx\b", ["x", "éx", "ax"], ["x", "éx"]),
        (r"\B", ["", "a"], [""]),
        (r"\Aab\z", ["ab", "ab\n"], ["ab"]),
        ("a(?i)b|c", ["ab", "aB", "AB", "C"], ["ab", "aB", "C"]),
        ("(?i:a)b", ["Ab", "AB"], ["Ab"]),
        ("(?i)(?-i:a)b", ["aB", "AB"], ["aB"]),
        ("(?i)^[^a]$", ["A", "a", "b"], ["b"]),
        (r"(?i)^\W$", ["S", "s", "-", "\u017f"], ["-"]),
        ("(?U)a+", ["aa"], ["aa"]),
        ("^[[:alpha:]]+$", ["ab", "a1"], ["ab"]),
        ("^[[:^digit:]]$", ["a", "1"], ["a"]),
        ("^[]a]$", ["]", "a", "b"], ["]", "a"]),
        ("^[a-]$", ["-", "a", "b"], ["-", "a"]),
        (r"^[\d.]+$", ["1.2", "a"], ["1.2"]),
        (r"^\p{Lu}$", ["É", "é"], ["É"]),
        (r"^\pN$", ["\u0665", "a"], ["\u0665"]),
        (r"^\P{L}$", ["1", "a"], ["1"]),
        (r"^\p{^L}$", ["1", "a"], ["1"]),
        (r"^\p{Greek}$", ["λ", "a"], ["λ"]),
        (r"^\x41\x{42}\103$", ["ABC"], ["ABC"]),
        (r"^\Qa.b*\E$", ["a.b*", "axb"], ["a.b*"]),
        ("^(?P<n>a)(?<m>b)$", ["ab"], ["ab"]),
        ("^a{,2}$", ["a{,2}", "aa"], ["a{,2}"]),
        ("^a{2,}$", ["a", "aaa"], ["aaa"]),
        ("^*a", ["a"], ["a"]),
        ("^(|a)b$", ["b", "ab"], ["b", "ab"]),
    ],
)
def test_a_pattern_matches_as_in_go(pattern: str, texts: list[str], expected: list[str]) -> None:
    assert matches(pattern, *texts) == expected


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("(+)", "missing argument to repetition operator: `+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a+?*", "invalid nested repetition operator: `+?*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("(a{40}){40}", "invalid repeat count: `{40}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\x{zz}", r"invalid escape sequence: `\x{z`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_a_pattern_that_go_refuses_is_refused_with_its_message(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)

    assert str(refused.value) == f"error parsing regexp: {problem}"


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"(a|aa)*b", r"^(a?){30}a{30}$", r"(a*)*!"])
def test_matching_takes_linear_time(pattern: str) -> None:
    text = "a" * 100_000 + "\n"
    started = time.process_time()

    compile_pattern(pattern).matches(text)

    assert time.process_time() - started < 1.0


def test_finding_is_linear_and_honours_greediness() -> None:
    assert compile_pattern(r"(a+)+!").find_all("a" * 40) == []
    assert compile_pattern("(?U)a+").find_all("aa") == ["a", "a"]
    assert compile_pattern("a*").find_all("baac", 2) == ["", "aa"]
    assert compile_pattern("é|x").find_all("xéyé") == ["x", "é", "é"]


def test_a_lone_surrogate_does_not_fail() -> None:
    assert not compile_pattern("^a$").matches("\ud800")
