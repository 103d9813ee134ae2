"""Halves of a plugin, for those that only change or only judge."""

from __future__ import annotations

from nodeyard.apiserver.admission.attributes import Attributes


class Mutating:
    """A plugin that never judges what came out in the end."""

    async def validate(self, attributes: Attributes) -> None:
        return


class Validating:
    """A plugin that never changes anything."""

    async def mutate(self, attributes: Attributes) -> None:
        return
