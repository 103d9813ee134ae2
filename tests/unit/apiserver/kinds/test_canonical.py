"""Times and bytes as Go reads them; the expected words are the real server's."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.apiserver.kinds.canonical import UnreadableError, canonical_base64, canonical_micro_time, canonical_time

SECONDS = "2006-01-02T15:04:05Z07:00"
MICRO = "2006-01-02T15:04:05.000000Z07:00"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00.5Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00-01:30", "2020-01-01T01:30:00Z"),
    ],
)
def test_a_time_is_kept_in_utc_to_the_second(written: str, kept: str) -> None:
    assert canonical_time(written) == kept


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("x", f'parsing time "x" as "{SECONDS}": cannot parse "x" as "2006"'),
        ("", f'parsing time "" as "{SECONDS}": cannot parse "" as "2006"'),
        (
            "2020-1-01T00:00:00Z",
            f'parsing time "2020-1-01T00:00:00Z" as "{SECONDS}": cannot parse "1-01T00:00:00Z" as "01"',
        ),
        ("20200101", f'parsing time "20200101" as "{SECONDS}": cannot parse "0101" as "-"'),
        (
            "2020-01-01T00:00:00+0100",
            f'parsing time "2020-01-01T00:00:00+0100" as "{SECONDS}": cannot parse "+0100" as "Z07:00"',
        ),
        ("2020-01-01T00:00:61Z", 'parsing time "2020-01-01T00:00:61Z": second out of range'),
        ("2020-01-01T00:61:00Z", 'parsing time "2020-01-01T00:61:00Z": minute out of range'),
        ("2020-01-01T24:00:00Z", 'parsing time "2020-01-01T24:00:00Z": hour out of range'),
        ("2020-00-01T00:00:00Z", 'parsing time "2020-00-01T00:00:00Z": month out of range'),
        ("2020-02-30T00:00:00Z", 'parsing time "2020-02-30T00:00:00Z": day out of range'),
        ("2020-01-01T00:00:00ZX", 'parsing time "2020-01-01T00:00:00ZX": extra text: "X"'),
    ],
)
def test_a_malformed_time_is_refused_with_the_message_of_go(written: str, words: str) -> None:
    with pytest.raises(UnreadableError) as refusal:
        canonical_time(written)
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    ("written", "rest", "element"),
    [
        ("2020-01-01T00:00:00Z", "Z", ".000000"),
        ("2020-01-01T00:00:00.5Z", ".5Z", ".000000"),
        ("2020-01-01T00:00:00.5000001Z", "1Z", "Z07:00"),
    ],
)
def test_a_micro_time_needs_all_six_digits(written: str, rest: str, element: str) -> None:
    with pytest.raises(UnreadableError) as refusal:
        canonical_micro_time(written)
    assert str(refusal.value) == f'parsing time "{written}" as "{MICRO}": cannot parse "{rest}" as "{element}"'


def test_a_micro_time_keeps_its_microseconds() -> None:
    assert canonical_micro_time("2020-01-01T00:00:00.500000+01:00") == "2019-12-31T23:00:00.500000Z"


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("abc", 0), ("abcd=", 4), ("ab!d", 2), ("YQ=", 3), ("YQ", 0), ("YWI=YQ", 4), ("Y", 0), ("YQ==\nYQ==", 5),
        ("YQ==x", 4), ("=", 0), ("a===", 1), ("YQ= =", 2),
    ],
)  # fmt: skip
def test_illegal_base64_is_refused_where_gos_decoder_gives_up(written: str, place: int) -> None:
    with pytest.raises(UnreadableError, match=f"illegal base64 data at input byte {place}$"):
        canonical_base64(written)


def test_line_breaks_and_stray_bits_are_dropped() -> None:
    assert canonical_base64("YW\nI=\r\n") == "YWI="
    assert canonical_base64("YR==") == "YQ=="
    assert canonical_base64("") == ""


@given(st.binary(max_size=50))
def test_encoding_keeps_all_values(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert canonical_base64(text) == text


def test_moments_before_the_year_1000_have_four_digits():
    assert canonical_micro_time("0001-01-01T00:00:02.000000Z") == "0001-01-01T00:00:02.000000Z"
    assert canonical_time("0987-06-05T04:03:02+01:00") == "0987-06-05T03:03:02Z"


def test_a_moment_before_the_first_year_cannot_be_read():
    with pytest.raises(UnreadableError, match="year out of range"):
        canonical_time("0001-01-01T00:00:00+14:00")
