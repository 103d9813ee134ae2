"""A message: a reason with its typed facts, and the sentence that they make.

Each capability has one subclass per reason in its `messages.py`:

    class Claimed(Message, frozen=True):
        reason = Reason.CLAIMED
        node: str
        zone: str = ""

        def text(self) -> str:
            return f"Claims node {self.node}{f' from zone {self.zone}' if self.zone else ''}"

The same message serves plans, conditions, Events, `why` and the dashboard. Its fields are the `facts` of the wire form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec

NAMED: Final = 5
"""Number of items that a message names at most."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A reason and its facts. A missing or misspelt fact is an error of the type checker."""

    reason: ClassVar[str]
    """The CamelCase reason in conditions, Events and plans."""

    def text(self) -> str:
        """Return the sentence. An action is in the present tense, since plans show it before it happens."""
        raise NotImplementedError

    def past_text(self) -> str:
        """Return the sentence of an action that succeeded, in the past tense of Events."""
        verb, separator, rest = self.text().partition(" ")
        return f"{PAST[verb]}{separator}{rest}"


PAST: Final = {
    "Adds": "Added",
    "Adopts": "Adopted",
    "Applies": "Applied",
    "Cancels": "Cancelled",
    "Changes": "Changed",
    "Claims": "Claimed",
    "Closes": "Closed",
    "Completes": "Completed",
    "Cordons": "Cordoned",
    "Creates": "Created",
    "Deletes": "Deleted",
    "Detaches": "Detached",
    "Enables": "Enabled",
    "Evicts": "Evicted",
    "Marks": "Marked",
    "Moves": "Moved",
    "Reconfigures": "Reconfigured",
    "Records": "Recorded",
    "Releases": "Released",
    "Removes": "Removed",
    "Replaces": "Replaced",
    "Returns": "Returned",
    "Rolls": "Rolled",
    "Scales": "Scaled",
    "Sets": "Set",
    "Starts": "Started",
    "Takes": "Took",
    "Uncordons": "Uncordoned",
    "Updates": "Updated",
    "Writes": "Wrote",
}
"""The past tense of each verb that begins the text of an action."""


def listed(items: Sequence[Any], most: int = NAMED) -> str:
    """Join the first few items and count the rest: `a, b and 3 more`."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
