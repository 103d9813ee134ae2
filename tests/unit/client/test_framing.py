"""Lines come out whole, however the bytes were cut."""

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.client.framing import LineFramer


def test_a_line_may_come_in_many_chunks():
    framer = LineFramer()
    assert framer.feed(b"ab") == []
    assert framer.feed(b"c") == []
    assert framer.feed(b"d\nef") == [b"abcd"]
    assert framer.rest == b"ef"


def test_a_chunk_may_hold_many_lines():
    assert LineFramer().feed(b"a\nb\n\nc\n") == [b"a", b"b", b"c"]


def test_a_line_of_megabytes_has_no_limit():
    framer = LineFramer()
    chunk = b"x" * 65536
    for _ in range(48):
        assert framer.feed(chunk) == []
    assert framer.feed(b"\n") == [chunk * 48]
    assert framer.rest == b""


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 300)))
def test_cutting_a_stream_anywhere_gives_the_same_lines(lines, cuts):
    stream = b"".join(line + b"\n" for line in lines)
    places = sorted({cut for cut in cuts if cut < len(stream)})
    pieces = [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]
    framer = LineFramer()
    assert [line for piece in pieces for line in framer.feed(piece)] == lines
    assert framer.rest == b""
