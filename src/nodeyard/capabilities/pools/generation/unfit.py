"""What was asked for cannot be written: which field is in the way, and what to do about it."""

from __future__ import annotations


class Unfit(Exception):
    """The class has no entry for the provider, or a field of it or of the cluster has no counterpart there."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
