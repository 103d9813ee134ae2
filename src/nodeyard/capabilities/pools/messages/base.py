"""Bases of messages: about a LatticeCluster, about a pool, and without facts."""

from __future__ import annotations

from typing import ClassVar

from nodeyard.plan.message import Message


class ClusterMessage(Message, frozen=True, kw_only=True):
    cluster: str
    """The name of the LatticeCluster."""


class PoolMessage(Message, frozen=True, kw_only=True):
    pool: str
    """The id of the pool."""
    display_name: str = ""

    @property
    def label(self) -> str:
        """The pool's id, followed by its displayName if it has one."""
        return f"{self.pool} ({self.display_name})" if self.display_name else self.pool


class Sentence(Message, frozen=True):
    """A message without facts."""

    sentence: ClassVar[str]

    def text(self) -> str:
        return self.sentence


def with_error(sentence: str, error: str) -> str:
    """Append the error, if there is one."""
    return f"{sentence}: {error}" if error else sentence
