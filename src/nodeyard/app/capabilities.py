"""The one list of capabilities: what this build of Nodeyard can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nodeyard.kube.json import Object


class Defining(Protocol):
    """A capability, as far as its kinds go."""

    name: str

    def definitions(self) -> Sequence[Object]:
        """The CRDs of the kinds it serves."""


CAPABILITIES: tuple[Defining, ...] = ()
