"""Results of short texts are kept, long texts are not."""

from tests.builders.memory import kept_bytes

from nodeyard.kube.short_cache import LONGEST, cache_short


def test_a_short_argument_is_computed_once_and_a_long_one_each_time():
    computed = []

    @cache_short(4)
    def measure(text: str) -> int:
        computed.append(text)
        return len(text)

    short, long = "a" * LONGEST, "a" * (LONGEST + 1)
    assert [measure(each) for each in (short, short, long, long)] == [LONGEST, LONGEST, LONGEST + 1, LONGEST + 1]
    assert computed == [short, long, long]


def test_long_arguments_leave_nothing_behind():
    cached = cache_short(1000)(len)

    assert kept_bytes(lambda: [cached(f"{number:0100000d}") for number in range(100)]) < 100_000


def test_the_length_of_another_argument_than_a_text_can_be_given():
    computed = []

    @cache_short(4, lambda pair: len(pair[0]))
    def join(pair: tuple[str, str]) -> str:
        computed.append(pair)
        return "".join(pair)

    for _ in range(2):
        join(("a", "b"))
        join(("a" * (LONGEST + 1), "b"))
    assert len(computed) == 3
