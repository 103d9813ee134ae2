"""Properties of configuration: any text is checked without an error, read like configparser, and kept."""

from __future__ import annotations

import base64
import configparser
import re

from hypothesis import example, given
from hypothesis import strategies as st

from nodeyard.capabilities.profiles.planning.configuration import cpusets
from nodeyard.capabilities.profiles.planning.configuration.drop_ins import render
from nodeyard.capabilities.profiles.planning.configuration.ini import check
from nodeyard.capabilities.profiles.planning.configuration.objects import config_object
from nodeyard.capabilities.profiles.planning.configuration.validation import validate_profile
from nodeyard.capabilities.profiles.snapshot import Profile

from ..builders.profiles import NODE, NOVA, node

NAMES = st.from_regex("[a-z_][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.from_regex(r"[A-Za-z0-9_./,^-]([A-Za-z0-9_./,^:=# -]{0,12}[A-Za-z0-9_./-])?", fullmatch=True)
LINES = st.one_of(
    st.sampled_from(["[a]", "[A]", "[", "[]", "a = 1", "a: 2", "  more", "\tmore", "# c", "  # c", "", "word", "= 1"]),
    st.text("ab=:[]#; \t\"'\r", max_size=8),
    st.text(max_size=8),
)
TEXTS = st.one_of(st.text(), st.lists(LINES, max_size=12).map("\n".join))


@st.composite
def well_formed(draw: st.DrawFn) -> str:
    """Text that oslo.config and configparser read alike: no quotes, no comments in values, no [DEFAULT]."""
    lines: list[str] = []
    for section in draw(st.lists(NAMES, min_size=1, max_size=4)):
        lines.append(f"[{section}]")
        for option in draw(st.lists(NAMES, max_size=4)):
            lines.append(f"{option}{draw(st.sampled_from([' = ', '=', ': ', ':']))}{draw(VALUES)}")
            lines += [f"  {draw(VALUES)}" for _ in range(draw(st.integers(0, 2)))]
            lines += draw(st.lists(st.sampled_from(["", "# a comment", "; another"]), max_size=2))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"]))


def as_python_reads(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=False, empty_lines_in_values=False)
    parser.read_string(text.replace("\r\n", "\n"))
    return {section: dict(parser.items(section)) for section in parser.sections()}


@given(TEXTS)
@example("\x85")
@example("\u2028a")
def test_any_text_is_checked_and_every_line_named_is_one_of_it(text: str) -> None:
    checked = check(text)
    count = len(re.split("\r\n|\r|\n", text))
    assert all(1 <= each.line <= count for each in (*checked.faults, *checked.warnings, *checked.options))
    assert checked.sections or checked.faults or checked.warnings


@given(TEXTS)
def test_validation_of_any_text_gives_few_and_short_messages(text: str) -> None:
    judged = validate_profile(NOVA, "p", text)
    assert len(judged.faults) <= 24
    assert all(len(sentence) < 500 and "\n" not in sentence for sentence in (*judged.faults, *judged.warnings))


@given(well_formed())
def test_a_well_formed_text_is_read_as_pythons_own_parser_reads_it(text: str) -> None:
    checked = check(text)
    last = {
        section: {option: values[-1] for option, values in options.items()}
        for section, options in checked.sections.items()
    }
    assert checked.faults == ()
    assert last == as_python_reads(text)


@given(TEXTS, TEXTS, TEXTS, st.sampled_from(["ConfigMap", "Secret"]))
def test_every_text_reaches_its_node_byte_for_byte(defaults: str, config: str, custom: str, kind: str) -> None:
    rendered = render(NOVA, NODE, Profile("p", config=config), custom, defaults)
    data = config_object(node(), NOVA, rendered, kind, None).get("data", {})
    kept = {name: base64.b64decode(text) if kind == "Secret" else text.encode() for name, text in data.items()}
    given = {
        "01-nova-defaults.conf": defaults.encode(),
        "02-nova-profile.conf": config.encode(),
        "03-nova-custom.conf": custom.encode(),
    }
    assert kept == {name: text for name, text in given.items() if text}


@given(TEXTS, TEXTS)
def test_two_configurations_have_the_same_hash_only_if_they_are_the_same(one: str, other: str) -> None:
    hashes = [render(NOVA, NODE, Profile("p", config=config), "").hash for config in (one, other)]
    assert (hashes[0] == hashes[1]) == (one == other)


@given(st.sets(st.integers(0, cpusets.HIGHEST), min_size=1, max_size=40))
def test_a_set_of_cpus_survives_being_written(cpus: set[int]) -> None:
    assert cpusets.parse(cpusets.format_cpus(cpus)) == cpus


@given(st.text(st.sampled_from("0123456789-^, x"), max_size=12))
@example("4-12,^8,15")
@example("^2-3,1-4")
@example("3,^3")
def test_a_text_is_a_set_of_cpus_exactly_if_parsing_it_leaves_some(text: str) -> None:
    assert read(text) == taken_apart(text)


def read(text: str) -> frozenset[int] | None:
    try:
        return cpusets.parse(text)
    except cpusets.Malformed:
        return None


def taken_apart(text: str) -> set[int] | None:
    """Compute the set with Python's ints; None if a part is invalid or the result is empty."""
    sets: dict[bool, set[int]] = {True: set(), False: set()}
    for part in filter(None, map(str.strip, text.split(","))):
        ends = part.removeprefix("^").split("-")
        if len(ends) > 2 or not all(end.strip().isdigit() for end in ends):
            return None
        first, last = int(ends[0]), int(ends[-1])
        if first > last or last > cpusets.HIGHEST:
            return None
        sets[part.startswith("^")].update(range(first, last + 1))
    return sets[False] - sets[True] or None
