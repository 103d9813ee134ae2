"""Nodes that were right need no second look while they, and all they are made of, are the very same values.

A pod that comes or goes concerns one leaf node, and a Cluster may mirror a thousand. Values are persistent, so that one
which is the same object has not changed, and an answer made of the same values is the same answer: what is remembered
here makes plans cheaper and never different.
"""

from __future__ import annotations

from operator import is_

_known: dict[str, dict[str, tuple[object, ...]]] = {}
"""By Cluster, and by node: what a node was made of that was right. Replaced as a whole by each plan of the Cluster."""


class Steady:
    """Of one plan."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._before = _known.get(cluster, {})
        self._now: dict[str, tuple[object, ...]] = {}

    def is_right(self, node: str, made_of: tuple[object, ...]) -> bool:
        """Whether the last plan found the node right, made of exactly this."""
        known = self._before.get(node)
        if known is None or len(known) != len(made_of) or not all(map(is_, known, made_of)):
            return False
        self._now[node] = known
        return True

    def note(self, node: str, made_of: tuple[object, ...]) -> None:
        """It is right."""
        self._now[node] = made_of

    def remember(self) -> None:
        """For the next plan; a Cluster without nodes is forgotten."""
        if self._now:
            _known[self._cluster] = self._now
        else:
            _known.pop(self._cluster, None)
