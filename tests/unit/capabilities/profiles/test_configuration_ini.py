"""INI text is checked as oslo.config reads it; faults and warnings name the line."""

from __future__ import annotations

import pytest
import yaml

from nodeyard.capabilities.profiles.planning.configuration.ini import (
    EMPTY,
    NO_SECTION,
    ONLY_COMMENTS,
    Fault,
    Option,
    check,
)

from ....builders.profiles import DEDICATED, DPDK, SHARED


def faults(text: str) -> list[str]:
    return [str(fault) for fault in check(text).faults]


def warnings(text: str) -> list[str]:
    return [str(warning) for warning in check(text).warnings]


@pytest.mark.parametrize("text", [SHARED, DEDICATED, DPDK], ids=["shared", "dedicated", "dpdk"])
def test_the_profiles_of_the_seed_are_clean(text: str) -> None:
    checked = check(text)
    assert checked.sections
    assert (checked.faults, checked.warnings) == ((), ())


def test_sections_hold_what_is_set_in_them() -> None:
    assert check(SHARED).sections == {
        "compute": {"cpu_shared_set": ["4-12,^8,15"]},
        "DEFAULT": {"cpu_allocation_ratio": ["4.0"]},
    }


def test_options_know_their_lines() -> None:
    assert check(SHARED).options == (
        Option("compute", "cpu_shared_set", "4-12,^8,15", 2),
        Option("DEFAULT", "cpu_allocation_ratio", "4.0", 4),
    )


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("a = 1", "a", "1"),
        ("a=1", "a", "1"),
        ("a: 1", "a", "1"),
        ("a = b:c", "a", "b:c"),
        ("a: b=c", "a", "b=c"),
        ("a =", "a", ""),
        ('a = "b c"', "a", "b c"),
        ("a = 'b'", "a", "b"),
        ("a = 'b\"", "a", "'b\""),
        ("a = 1 # one", "a", "1 # one"),
        ("a = 1   ", "a", "1"),
    ],
)
def test_an_option_ends_at_the_first_separator_and_its_value_with_the_line(line: str, name: str, value: str) -> None:
    assert check(f"[s]\n{line}\n").sections == {"s": {name: [value]}}


def test_indented_lines_continue_with_a_value() -> None:
    assert check("[s]\na = 1,\n  2,\n    3\nb = 4\n").sections == {"s": {"a": ["1,\n2,\n3"], "b": ["4"]}}


def test_an_empty_line_ends_a_value() -> None:
    assert faults("[s]\na = 1\n\n  2\n") == ["line 4: is indented, but continues no option; remove the indentation"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
def test_any_line_ending_is_accepted(end: str) -> None:
    checked = check(end.join(["[s]", "a = 1", "# c", "b = 2"]))
    assert (checked.sections, checked.faults) == ({"s": {"a": ["1"], "b": ["2"]}}, ())


def test_a_section_may_be_repeated() -> None:
    checked = check("[s]\na = 1\n[t]\n[s]\nb = 2\n")
    assert (checked.sections, checked.warnings) == ({"s": {"a": ["1"], "b": ["2"]}, "t": {}}, ())


# faults


def test_an_option_before_the_first_header_is_a_fault_that_is_reported_once() -> None:
    checked = check("a = 1\n  more\nb = 2\n[s]\nc = 3\n")
    assert checked.faults == (Fault(1, "option 'a' is before the first [section] header; add one above it"),)
    assert checked.sections == {"s": {"c": ["3"]}}


@pytest.mark.parametrize("line", ["\tb = 2", "  \t2", "\t# comment"])
def test_a_tab_in_an_indentation_is_a_fault(line: str) -> None:
    assert faults(f"[s]\na = 1\n{line}\n") == ["line 3: is indented with a tab; use spaces"]


def test_a_tab_elsewhere_is_none() -> None:
    assert faults("[s]\t\na\t=\t1\n\t\nb = 2\n") == []


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("[compute", "a section header must be alone on its line, as [section]; end it with ']'"),
        (
            "[compute] # pinned",
            "a section header must be alone on its line, as [section]; move the text after ']' to its own line",
        ),
        ("[]", "a section header needs a name, as [section]"),
        ("[ ]", "a section header needs a name, as [section]"),
        ("[ compute ]", "a section whose name has brackets or surrounding spaces is never read; write [section]"),
        ("[[compute]]", "a section whose name has brackets or surrounding spaces is never read; write [section]"),
    ],
)
def test_a_malformed_header_is_a_fault_and_its_options_belong_to_no_section(header: str, message: str) -> None:
    checked = check(f"[s]\na = 1\n{header}\na = 2\n")
    assert checked.faults == (Fault(3, message),)
    assert (checked.sections, checked.warnings) == ({"s": {"a": ["1"]}}, ())


def test_a_line_that_is_nothing_is_a_fault_that_quotes_none_of_it() -> None:
    assert faults("[s]\ntransport_url rabbit//user/secret\n  more of it\n") == [
        "line 2: is not a [section] header, a comment or `option = value`"
    ]


def test_the_rest_of_a_value_that_is_not_indented_is_not_quoted() -> None:
    told = faults('[s]\npassword =\ns3cret\n[["s3cret"]]\n[s3cret\n')

    assert len(told) == 3
    assert "s3cret" not in str(told)


def test_invisible_characters_are_named_visibly() -> None:
    assert faults("\ufeff[s]\na = 1\n")[0].startswith("line 1: begins with the invisible character U+FEFF and is not")


@pytest.mark.parametrize("separator", ["=", ":"])
def test_an_option_without_a_name_is_a_fault(separator: str) -> None:
    assert faults(f"[s]\n{separator} 1\n") == [f"line 2: an option needs a name before the '{separator}'"]


def test_every_fault_is_reported_with_its_line() -> None:
    assert [fault.line for fault in check("[s]\na\n\n  b\n[\nc = 1\nd\n").faults] == [2, 4, 5, 7]


# warnings


@pytest.mark.parametrize("second", ["[compute]", "[Compute]"], ids=["same", "another case"])
def test_an_option_set_twice_in_a_section_is_warned_about(second: str) -> None:
    checked = check(f"[compute]\na = 1\n[DEFAULT]\na = 0\n{second}\na = 2\n")
    name = second[1:-1]
    assert checked.faults == ()
    assert checked.warnings == (
        Fault(
            6,
            f"option 'a' of section '{name}' is already set in line 2; unless it is a multi-value option, the last "
            f"value wins",
        ),
    )


def test_a_multi_valued_option_keeps_its_values_in_order() -> None:
    assert check("[pci]\nalias = x\nalias = y\n").sections == {"pci": {"alias": ["x", "y"]}}


@pytest.mark.parametrize(
    ("line", "looks_like"), [("[DEFAULT]", "a section header"), ("# pinned", "a comment"), ("; pinned", "a comment")]
)
def test_a_header_or_comment_that_becomes_part_of_a_value_is_warned_about(line: str, looks_like: str) -> None:
    checked = check(f"[compute]\na = 1\n  {line}\n")
    assert checked.sections == {"compute": {"a": [f"1\n{line}"]}}
    assert checked.warnings == (
        Fault(
            3,
            f"looks like {looks_like}, but is indented and becomes part of the value of option 'a' in line 2; remove "
            f"the indentation",
        ),
    )


def test_a_list_that_continues_over_lines_looks_like_no_header() -> None:
    assert warnings('[pci]\ndevice_spec =\n  [{"vendor_id": "8086"}]\n  ["a"]\n') == []


@pytest.mark.parametrize("text", ["", "\n", "   \n\t\n"], ids=["nothing", "an empty line", "blanks"])
def test_an_empty_configuration_is_warned_about(text: str) -> None:
    checked = check(text)
    assert (checked.faults, checked.warnings) == ((), (Fault(1, EMPTY),))


def test_a_configuration_of_comments_alone_is_warned_about() -> None:
    checked = check("# shared\n; cpus\n")
    assert (checked.faults, checked.warnings) == ((), (Fault(1, ONLY_COMMENTS),))


def test_a_configuration_without_a_section_is_at_fault_and_warned_about() -> None:
    text = "cpu_shared_set = 4-12\n"
    assert faults(text) == ["line 1: option 'cpu_shared_set' is before the first [section] header; add one above it"]
    assert warnings(text) == [f"line 1: {NO_SECTION}"]


def test_a_text_that_is_indented_as_a_whole_is_at_fault_once() -> None:
    text = "    [compute]\n    cpu_shared_set = 4-12\n"
    assert len(faults(text)) == 1
    assert warnings(text) == [f"line 1: {NO_SECTION}"]


@pytest.mark.parametrize(
    ("manifest", "warning"),
    [
        ("spec:\n    customComputeServiceConfig: |\n", EMPTY),
        ("spec:\n    customComputeServiceConfig: |\n    # [compute] is to come\n", EMPTY),
        ("spec:\n    customComputeServiceConfig: |\n        # [compute] is to come\n", ONLY_COMMENTS),
    ],
    ids=["nothing below", "a comment as far in as the key", "a comment further in"],
)
def test_a_remnant_of_an_indentation_mistake_in_yaml_is_warned_about(manifest: str, warning: str) -> None:
    text = yaml.safe_load(manifest)["spec"]["customComputeServiceConfig"]
    assert check(text).warnings == (Fault(1, warning),)
