"""What is kept beside the objects of a cache and follows them: indexes and aggregates.

Both are told of a change in two steps. `stage` calls the functions that a capability declared, which may fail on an
object nobody thought of, and changes nothing; `commit` cannot fail. So a cache either takes a change everywhere or sets
the object aside, and is never half updated.
"""

from __future__ import annotations

from typing import Any, Protocol

from nodeyard.kube.identity import Key


class Derived(Protocol):
    def stage(self, key: Key, old: Any | None, new: Any | None) -> Any:
        """What the change will do; pure."""

    def commit(self, staged: Any) -> None: ...
