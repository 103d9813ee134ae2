"""Syntax of CPU sets, and the overlap check of the shared and the dedicated set."""

from __future__ import annotations

import pytest

from nodeyard.capabilities.profiles.planning.configuration.cpusets import (
    HIGHEST,
    Malformed,
    Source,
    faults,
    format_cpus,
    overlap_faults,
    parse,
)
from nodeyard.capabilities.profiles.planning.configuration.ini import check

from ....builders.profiles import SHARED


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("4-12,^8,15", {4, 5, 6, 7, 9, 10, 11, 12, 15}),
        ("0", {0}),
        ("3-3", {3}),
        ("^2,1-3", {1, 3}),
        ("0-7,^2-4", {0, 1, 5, 6, 7}),
        (" 1 , 4 - 5 , ^ 5 ", {1, 4}),
        ("1,,2,", {1, 2}),
        ("1,\n2", {1, 2}),
        ("1-3,^9", {1, 2, 3}),
    ],
)
def test_a_cpu_set_is_its_included_cpus_without_excluded_ones(text: str, cpus: set[int]) -> None:
    assert parse(text) == cpus


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "has a part that is neither a CPU nor a CPU range; write a set as 4-12,^8,15"),
        ("1-", "has '1-', which is neither a CPU nor a CPU range; write a set as 4-12,^8,15"),
        ("-4", "has '-4', which is neither a CPU nor a CPU range; write a set as 4-12,^8,15"),
        ("1-2-3", "has '1-2-3', which is neither a CPU nor a CPU range; write a set as 4-12,^8,15"),
        ("1 2", "has '1 2', which is neither a CPU nor a CPU range; write a set as 4-12,^8,15"),
        ("^", "has '^', which is neither a CPU nor a CPU range; write a set as 4-12,^8,15"),
        ("\u0663", "has a part that is neither a CPU nor a CPU range; write a set as 4-12,^8,15"),
        ("12-4", "has '12-4', a range that ends before it begins; write it as 4-12"),
        ("0-65536", f"has '0-65536'; CPUs are numbered from 0 to {HIGHEST}"),
        ("", "contains no CPU; write a set as 4-12,^8,15"),
        (",", "contains no CPU; write a set as 4-12,^8,15"),
        ("^3", "contains no CPU; write a set as 4-12,^8,15"),
        ("3,^3", "excludes every CPU that it contains"),
    ],
)
def test_an_invalid_cpu_set_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse(text)
    assert str(refused.value) == message


def test_a_set_is_shown_as_short_as_it_can_be_written() -> None:
    assert format_cpus(parse("15,4-12,^8")) == "4-7,9-12,15"
    assert format_cpus([]) == ""


def test_a_malformed_set_in_a_text_is_reported_with_its_line() -> None:
    assert faults(check("[compute]\ncpu_shared_set = 4-12\ncpu_dedicated_set = 9-2\n")) == [
        "line 3: [compute] cpu_dedicated_set = '9-2' has '9-2', a range that ends before it begins; write it as 2-9"
    ]


def test_a_line_that_is_indented_below_a_set_by_mistake_is_not_quoted() -> None:
    (told,) = faults(check("[compute]\ncpu_shared_set = 4-12\n  password = s3cret\n"))

    assert told == (
        "line 2: [compute] cpu_shared_set has a part that is neither a CPU nor a CPU range; write a set as 4-12,^8,15"
    )


@pytest.mark.parametrize(
    "text",
    [SHARED, "[compute]\ncpu_shared_set =\n", "[libvirt]\ncpu_shared_set = x\n", "[DEFAULT]\ncpu_dedicated_set = x\n"],
    ids=["a good one", "one that is unset", "another section", "the default section"],
)
def test_valid_cpu_sets_report_nothing(text: str) -> None:
    assert faults(check(text)) == []


def test_a_section_counts_whatever_its_case() -> None:
    assert len(faults(check("[Compute]\ncpu_shared_set = x\n"))) == 1


def sources(*texts: str) -> list[Source]:
    return [Source(f"text {number}", check(text)) for number, text in enumerate(texts, start=1)]


def compute(**options: str) -> str:
    return "[compute]\n" + "".join(f"{name} = {value}\n" for name, value in options.items())


def test_sets_that_overlap_over_several_texts_are_reported_with_both_places() -> None:
    assert overlap_faults(sources(compute(cpu_shared_set="4-12,^8"), compute(cpu_dedicated_set="7-9,20"))) == [
        "[compute] cpu_shared_set = '4-12,^8' (text 1, line 2) and cpu_dedicated_set = '7-9,20' (text 2, line 2) "
        "overlap in CPUs 7,9; a CPU is either shared or dedicated: remove them from one of the two"
    ]


@pytest.mark.parametrize(
    "texts",
    [
        (),
        (compute(cpu_shared_set="0-3", cpu_dedicated_set="4-7"),),
        (compute(cpu_shared_set="0-7", cpu_dedicated_set="4-7"), compute(cpu_shared_set="0-3")),
        (compute(cpu_shared_set="0-7"), compute(cpu_dedicated_set="0-7", cpu_shared_set="")),
        (compute(cpu_shared_set="0-7"), "[libvirt]\ncpu_dedicated_set = 0-7\n"),
    ],
    ids=["no text", "apart", "the later one mends it", "the later one unsets it", "another section"],
)
def test_sets_that_are_apart_are_not_reported(texts: tuple[str, ...]) -> None:
    assert overlap_faults(sources(*texts)) == []


def test_a_later_layer_can_make_cpu_sets_overlap() -> None:
    apart = compute(cpu_shared_set="0-3", cpu_dedicated_set="4-7")
    assert "overlap in CPUs 4-5;" in overlap_faults(sources(apart, compute(cpu_shared_set="0-5")))[0]


def test_within_a_text_the_last_value_counts_whatever_the_case_of_its_section() -> None:
    text = "[compute]\ncpu_shared_set = 0-9\ncpu_dedicated_set = 4-12\n[Compute]\ncpu_shared_set = 0-5\n"
    assert overlap_faults(sources(text)) == [
        "[compute] cpu_shared_set = '0-5' (text 1, line 5) and cpu_dedicated_set = '4-12' (text 1, line 3) overlap in "
        "CPUs 4-5; a CPU is either shared or dedicated: remove them from one of the two"
    ]


def test_a_malformed_set_overlaps_with_nothing() -> None:
    assert overlap_faults(sources(compute(cpu_shared_set="x", cpu_dedicated_set="1"))) == []
