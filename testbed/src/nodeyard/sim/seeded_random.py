"""Chance that can be repeated.

Each draw depends on the seed and on what is drawn for (stage, object, how many times before), not on the order in which
draws happen to be made: one more node in the world does not change the fate of the others.
"""

from __future__ import annotations

from hashlib import blake2b

_RANGE = 2**64
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Chance:
    def __init__(self, seed: int) -> None:
        self._key = seed.to_bytes(16, "big", signed=True)

    def draw(self, *what: str | int) -> float:
        """In [0, 1)."""
        return self._number(what) / _RANGE

    def between(self, low: float, high: float, *what: str | int) -> float:
        return low + (high - low) * self.draw(*what)

    def suffix(self, length: int, *what: str | int) -> str:
        """Letters and digits as Kubernetes puts them at the end of a name."""
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
