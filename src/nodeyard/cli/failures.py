"""Errors of a command, printed as one line."""

from __future__ import annotations

from typing import Final

USAGE_ERROR: Final = 64
"""EX_USAGE of sysexits.h; `nodeyard plan` exits with 2 when changes are pending."""


class Failure(Exception):
    """A failed command. The text tells the user what is wrong and what to do."""

    exit_code = 1


class UsageFailure(Failure):
    """An option or argument has an invalid value."""

    exit_code = USAGE_ERROR
