"""The objects that several messages concern: a service, a service on a node, a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodeyard.plan.message import Message, listed

_NAMED: Final = 10
KEPT: Final = "the deployed configuration is kept"


def count(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else f'{word}s'}"


def count_nodes(nodes: Sequence[str]) -> str:
    """Return the number of nodes and the names of the first ones."""
    return f"{count(len(nodes), 'node')} ({listed(nodes, _NAMED)})"


def capitalize(words: str) -> str:
    return words[:1].upper() + words[1:]


class ServiceMessage(Message, frozen=True):
    """A message about one service, by which the status and `why` find it."""

    service: str


class NodeServiceMessage(ServiceMessage, frozen=True):
    """A message about a service on a node."""

    node: str

    @property
    def subject(self) -> str:
        return f"{self.service} on node {self.node}"


class ProfileMessage(ServiceMessage, frozen=True, kw_only=True):
    """A message about a profile of a service, or about its configuration without a profile."""

    kind: str
    profile: str = ""

    @property
    def named(self) -> str:
        return f"{self.kind} {self.profile}" if self.profile else f"no {self.kind}"


class NodeProfileMessage(ProfileMessage, frozen=True, kw_only=True):
    """A message about the profile of a service on a node."""

    node: str

    @property
    def subject(self) -> str:
        return f"{self.service} on node {self.node}"
