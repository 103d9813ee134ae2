"""Reasons of the engine, in addition to those of each capability, and their texts."""

from __future__ import annotations

from enum import StrEnum

from nodeyard.kube.names import PAUSED
from nodeyard.plan.message import Message


class EngineReason(StrEnum):
    NEEDS_APPROVAL = "NeedsApproval"
    ADMISSION_DENIED = "AdmissionDenied"
    NOT_SERVED = "NotServed"
    PAUSED = "Paused"
    APPROVAL_REMOVED = "ApprovalRemoved"


class NeedsApproval(Message, frozen=True):
    """The brake holds the object's actions."""

    reason = EngineReason.NEEDS_APPROVAL
    id: str
    nodes: int
    managed: int
    limit: str
    disrupts: str = ""
    """The disrupted objects, if not all are nodes."""
    always: bool = False
    """True if an action needs an approval however few nodes it disrupts."""

    @property
    def cause(self) -> str:
        why = "which always needs approval" if self.always else f"more than the limit of {self.limit}"
        what = self.disrupts or f"{self.nodes} of {self.managed} managed nodes"
        return f"{what} would be disrupted, {why}"

    def text(self) -> str:
        return f"held: {self.cause}; run `nodeyard approve {self.id}` to proceed"


class Paused(Message, frozen=True):
    """A user paused all root objects of the plan."""

    reason = EngineReason.PAUSED
    object: str

    def text(self) -> str:
        return f"{self.object} is paused by annotation {PAUSED}: nothing is written for it until that is removed"


class ApprovalRemoved(Message, frozen=True):
    """The purpose of an approval has ended; the same change later needs a new one."""

    reason = EngineReason.APPROVAL_REMOVED
    object: str
    ids: tuple[str, ...]

    def text(self) -> str:
        return f"Removes approval {', '.join(self.ids)} of {self.object}: what it was given for has ended"


class AdmissionDenied(Message, frozen=True):
    """A webhook or an admission policy refused the write."""

    reason = EngineReason.ADMISSION_DENIED
    message: str
    by: str = ""
    """The webhook or policy, if the answer names it."""

    def text(self) -> str:
        return f"admission denied the write ({self.by or 'unnamed'}): {self.message}"
