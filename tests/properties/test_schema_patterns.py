"""Any text compiles or raises PatternError; a quoted text matches itself only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.schema.patterns import PatternError, compile_pattern

PIECES = st.sampled_from(
    [
        *"ab0-_.^$*+?()|[]{}\\:,\n é",
        "(?",
        "(?i)",
        "(?:",
        "(?P<n>",
        "[^",
        "[[:alpha:]]",
        r"\d",
        r"\W",
        r"\pL",
        r"\x41",
        "{2}",
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_any_text_compiles_or_raises_pattern_error(source: str) -> None:
    problem = ""
    try:
        compile_pattern(source)
    except PatternError as error:
        problem = str(error)

    assert not problem or problem.startswith("error parsing regexp: ")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12))
def test_a_quoted_text_matches_only_itself(text: str) -> None:
    quoted = "".join(f"\\x{{{ord(char):x}}}" for char in text)
    pattern = compile_pattern(f"^{quoted}$")

    assert pattern.matches(text)
    assert not pattern.matches(f"{text}x")
