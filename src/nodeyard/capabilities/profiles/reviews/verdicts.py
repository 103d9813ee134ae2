"""How many nodes a refusal is about, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodeyard.plan import layout
from nodeyard.plan.sentences import listed

_NAMED: Final = 10


def counted(nodes: Sequence[Any]) -> str:
    """How many nodes, and the first of them by name."""
    return f"{layout.counted(len(nodes), 'node')} ({listed(nodes, _NAMED)})"
