"""What is said, in one line, when a verb cannot do its work."""

from __future__ import annotations


class Failure(Exception):
    """The text is for the person who typed the command: what is wrong, and what to do."""
