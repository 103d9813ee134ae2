"""Any text is either a pattern or refused as one; a literal matches itself."""

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
def test_a_text_compiles_or_is_refused(source: str) -> None:
    problem = ""
    try:
        compile_pattern(source)
    except PatternError as error:
        problem = str(error)

    assert not problem or problem.startswith("error parsing regexp: ")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12))
def test_a_quoted_text_matches_itself_alone(text: str) -> None:
    quoted = "".join(f"\\x{{{ord(char):x}}}" for char in text)
    pattern = compile_pattern(f"^{quoted}$")

    assert pattern.matches(text)
    assert not pattern.matches(f"{text}x")
