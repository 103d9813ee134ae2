"""Reproducible random numbers.

Each number depends on the seed and on what it is drawn for (stage, object, how often before), not on the order of
draws: one more node does not change what happens to the others.
"""

from __future__ import annotations

from hashlib import blake2b

_RANGE = 2**64
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class SeededRandom:
    def __init__(self, seed: int) -> None:
        self._key = seed.to_bytes(16, "big", signed=True)

    def random(self, *what: str | int) -> float:
        """Return a number in [0, 1)."""
        return self._number(what) / _RANGE

    def uniform(self, low: float, high: float, *what: str | int) -> float:
        return low + (high - low) * self.random(*what)

    def suffix(self, length: int, *what: str | int) -> str:
        """Return letters and digits like the suffix of a generated name in Kubernetes."""
        number = self._number(what)
        letters = []
        for _ in range(length):
            number, rest = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[rest])
        return "".join(letters)

    def hexadecimal(self, length: int, *what: str | int) -> str:
        text = "\0".join(map(str, what)).encode()
        return blake2b(text, key=self._key, digest_size=32).hexdigest()[:length]

    def _number(self, what: tuple[str | int, ...]) -> int:
        text = "\0".join(map(str, what)).encode()
        return int.from_bytes(blake2b(text, key=self._key, digest_size=8).digest(), "big")
