"""Polling for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.25


def until(condition: Callable[[], T | None], what: str, timeout: float = 30.0) -> T:
    """Poll at growing intervals until the condition is true; return its value.

    Raise TimeoutError with `what` and the last value.
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
