"""Quantities are read, written, compared and added as the API server does; expected texts are the real server's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.kube.quantity import NANO, Notation, Quantity, QuantityError, canonical, of, parse

STORED = {
    "0.5": "500m", "m": "0", "1.5Gi": "1536Mi", "0.5Ki": "512", "12e2": "1200", "1000Ki": "1000Ki", "1024Ki": "1Mi",
    "0.0000000001": "1n", "9999999999999999999999": "9999999999999999999999", "1000000": "1M", "1.0": "1", "0Gi": "0",
    "16Ei": "9223372036854775807", "1.1Ki": "1126400m", "100E": "100E", "1e-3": "1e-3", "8Ki": "8Ki", "1023": "1023",
    "123456789n": "123456789n", "1e30": "1e30", "1.0000000001": "1000000001n", "1.0000000001Ki": "1024000000103n",
    "0.1Ki": "102400m", "1e1": "10", "15e5": "1500e3", "1k": "1k", "1000k": "1M", "1500M": "1500M", "100e2": "10e3",
    "1.5e3": "1500", "2.5Ei": "2560Pi", "1e-10": "1e-9", "00.5": "500m", ".5": "500m", "512Mi": "512Mi",
    "1536Mi": "1536Mi", "1000m": "1", "100m": "100m", "0.001": "1m", "1.1": "1100m", "10e-1": "1", "1.10": "1100m",
    "1200Ki": "1200Ki", "12000": "12k", "120000": "120k", "2048": "2048", "1025Ki": "1025Ki", "8Ei":
    "9223372036854775807", "7Ei": "7Ei", "1n": "1n", "1500n": "1500n", "3Ki": "3Ki", "65536Ki": "64Mi",
    "3145728Ki": "3Gi", "9223372036854775808": "9223372036854775808", "-": "0", ".": "0", "Gi": "0", "-5Mi": "-5Mi",
}  # fmt: skip

KEPT_THOUGH_NOT_CANONICAL = ("1.500", "+1", "1E3", "0001Mi", "1e+3", "5.", "1.G", "1e0", "+1Gi", "1e3")

MALFORMED = {
    "": "quantities must match the regular expression",
    "1Kib": "quantities must match the regular expression",
    "1 Gi": "quantities must match the regular expression",
    "1.2.3": "quantities must match the regular expression",
    "1e1.5": "quantities must match the regular expression",
    "x": "quantities must match the regular expression",
    "1ee": "unable to parse quantity's suffix",
    "1e": "unable to parse quantity's suffix",
    "--1": "unable to parse quantity's suffix",
}


@pytest.mark.parametrize(("written", "stored"), STORED.items())
def test_a_quantity_is_stored_in_canonical_form(written: str, stored: str) -> None:
    assert canonical(written) == stored


@pytest.mark.parametrize("written", KEPT_THOUGH_NOT_CANONICAL)
def test_text_that_looks_canonical_to_the_server_is_kept(written: str) -> None:
    assert canonical(written) == written


@pytest.mark.parametrize(("written", "reason"), MALFORMED.items())
def test_a_malformed_quantity_is_refused_with_the_message_of_the_server(written: str, reason: str) -> None:
    with pytest.raises(QuantityError, match=reason):
        parse(written)


def test_equality_and_order_look_at_the_amount_not_the_notation() -> None:
    assert parse("1000m") == parse("1")
    assert parse("1024Mi") == parse("1Gi")
    assert parse("999m") < parse("1") < parse("1Ki")
    assert max(parse("1G"), parse("1Gi")) == parse("1Gi")
    assert len({parse("1"), parse("1000m")}) == 1


def test_a_sum_keeps_the_notation_of_its_first_amount() -> None:
    assert str(parse("512Mi") + parse("512Mi")) == "1Gi"
    assert str(parse("100m") + parse("900m")) == "1"
    assert str(Quantity(0) + parse("3Gi")) == "3Gi"
    assert str(parse("1Gi") - parse("1Mi")) == "1023Mi"
    assert str(-parse("5Mi")) == "-5Mi"


def test_whole_units_and_thousandths_round_away_from_zero() -> None:
    assert parse("1500m").value() == 2
    assert parse("-1500m").value() == -2
    assert parse("0.0001").milli() == 1
    assert parse("-1500u").milli() == -2
    assert of(3).milli() == 3000


@given(st.integers(min_value=-(10**27), max_value=10**27), st.sampled_from(Notation))
def test_a_formatted_quantity_is_parsed_back_to_the_same_amount(nano: int, notation: Notation) -> None:
    assert parse(str(Quantity(nano, notation))).nano == nano


@given(st.integers(min_value=1, max_value=2**40), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_canonical_form_is_a_fixed_point(number: int, suffix: str) -> None:
    once = canonical(f"{number}{suffix}")
    assert canonical(once) == once


@given(st.integers(min_value=-(10**12), max_value=10**12), st.integers(min_value=-(10**12), max_value=10**12))
def test_adding_quantities_adds_their_amounts(a: int, b: int) -> None:
    assert (Quantity(a) + Quantity(b)).nano == a + b
    assert (of(a) + of(b)).nano == (a + b) * NANO


@pytest.mark.parametrize(
    ("written", "read"), [("1e3000000", "1e1000"), ("1e-3000000", "1n"), ("-1e3000000", "-1e1000")]
)
def test_a_power_of_ten_beyond_all_is_not_written_out(written: str, read: str) -> None:
    assert parse(written) == parse(read)


@pytest.mark.parametrize("text", ["9" * 5000, f"0.{'9' * 5000}", f"1e{'9' * 5000}"], ids=["whole", "fraction", "power"])
def test_a_number_without_end_is_no_quantity(text: str) -> None:
    with pytest.raises(QuantityError, match="no more than 1000 digits"):
        parse(text)
