"""Lines are complete, however the bytes are split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.client.bodies import LineFramer, TooLarge, read_all


def test_a_line_may_come_in_many_chunks():
    framer = LineFramer()
    assert framer.feed(b"ab") == []
    assert framer.feed(b"c") == []
    assert framer.feed(b"d\nef") == [b"abcd"]
    assert framer.rest == b"ef"


def test_a_chunk_may_hold_many_lines():
    assert LineFramer().feed(b"a\nb\n\nc\n") == [b"a", b"b", b"c"]


def test_a_line_may_have_megabytes():
    framer = LineFramer()
    chunk = b"x" * 65536
    for _ in range(48):
        assert framer.feed(chunk) == []
    assert framer.feed(b"\n") == [chunk * 48]
    assert framer.rest == b""


def fed(framer, chunk, times):
    return [framer.feed(chunk) for _ in range(times)]


def test_a_line_without_an_end_is_given_up():
    with pytest.raises(TooLarge, match="a line is larger than 16 MiB"):
        fed(LineFramer(), b"x" * (1 << 20), 17)


def test_an_endless_line_after_another_is_given_up():
    framer = LineFramer(1 << 20)
    with pytest.raises(TooLarge, match="a line is larger than 1 MiB"):
        framer.feed(b"a\n" + b"x" * (1 << 20))


def test_lines_that_end_do_not_add_up():
    framer = LineFramer(1000)
    for _ in range(100):
        framer.feed(b"x" * 500)
        assert framer.feed(b"y\n") == [b"x" * 500 + b"y"]


def test_many_tiny_pieces_count_for_what_they_take():
    with pytest.raises(TooLarge):
        fed(LineFramer(1000), b"x", 100)


async def test_an_answer_that_is_read_whole_has_a_limit():
    async def chunks():
        yield b"a" * 1000
        yield b"b" * 1000

    assert await read_all(chunks(), 3000) == b"a" * 1000 + b"b" * 1000
    with pytest.raises(TooLarge, match="the response is larger than"):
        await read_all(chunks(), 2000)


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 300)))
def test_cutting_a_stream_anywhere_gives_the_same_lines(lines, cuts):
    stream = b"".join(line + b"\n" for line in lines)
    places = sorted({cut for cut in cuts if cut < len(stream)})
    pieces = [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]
    framer = LineFramer()
    assert [line for piece in pieces for line in framer.feed(piece)] == lines
    assert framer.rest == b""
