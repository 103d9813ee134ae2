"""Write fences: may writes go out now?

Without leader election (`nodeyard run --no-leader-elect`, one-shot commands) the fence is `ALWAYS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class WriteFence(Protocol):
    """Tells whether writes may go out now; constant time, any thread."""

    def may_write(self) -> bool: ...


@dataclass(frozen=True)
class OpenFence:
    def may_write(self) -> bool:
        return True


@dataclass(frozen=True)
class ClosedFence:
    def may_write(self) -> bool:
        return False


ALWAYS = OpenFence()
CLOSED = ClosedFence()
