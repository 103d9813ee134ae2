"""Waiting for something outside to become true, with a deadline and a reason when it does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.25


def until(condition: Callable[[], T | None], what: str, timeout: float = 30.0) -> T:
    """Ask again and again, at growing intervals, until the answer is true; return it.

    Raises TimeoutError saying `what` did not happen and the last answer.
    """
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    while True:
        answer = condition()
        if answer:
            return answer
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"not within {timeout:g} s: {what} (last answer: {answer!r})")
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
