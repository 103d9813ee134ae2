"""Waiting with a deadline."""

from __future__ import annotations

import pytest

from nodeyard.testing.wait import until


def test_the_first_true_answer_is_returned() -> None:
    answers = iter(["", None, "yes", "later"])
    assert until(lambda: next(answers), "somebody says yes") == "yes"


def test_a_true_answer_is_returned_even_when_no_time_is_left() -> None:
    assert until(lambda: 1, "it is one", timeout=0) == 1


def test_the_timeout_names_the_expectation_and_the_last_result() -> None:
    with pytest.raises(TimeoutError, match=r"not within 0.05 s: the pods are gone \(last answer: \[\]\)"):
        until(list, "the pods are gone", timeout=0.05)


def test_an_error_in_the_condition_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        until(lambda: 1 // 0, "never")
