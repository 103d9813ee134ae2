"""Messages about remedies: what would change a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import UpdatePolicy
from nodeyard.plan.message import Message, listed

_GRANT: Final = "a ClusterRole that aggregates to Nodeyard's role for profiles"


class AnnotateNode(Message, frozen=True):
    reason = Reason.ANNOTATE_NODE
    keys: tuple[str, ...]

    def text(self) -> str:
        return (
            f"Annotate the node with {_one_of(self.keys)}: this overrides the role for this node only; an empty value "
            "means no profile"
        )


class AnnotateRole(Message, frozen=True):
    reason = Reason.ANNOTATE_ROLE
    keys: tuple[str, ...]
    role: str = ""

    def text(self) -> str:
        return (
            f"Annotate the role{f' {self.role}' if self.role else ''} with {_one_of(self.keys)}: this applies to its "
            "nodes that do not have the annotation"
        )


def _one_of(keys: Sequence[str]) -> str:
    return keys[0] if len(keys) == 1 else f"one of {', '.join(keys)}"


class CreateProfile(Message, frozen=True):
    reason = Reason.CREATE_PROFILE
    kind: str
    profile: str
    namespace: str

    def text(self) -> str:
        return f"Create {self.kind} {self.profile} in namespace {self.namespace}"


class CreateRole(Message, frozen=True):
    reason = Reason.CREATE_ROLE
    role: str

    def text(self) -> str:
        return f"Create {names.ROLE_KIND} {self.role}"


class FixAnnotation(Message, frozen=True):
    reason = Reason.FIX_ANNOTATION
    key: str

    def text(self) -> str:
        return f"Set {self.key} to one profile name, not a list"


class GrantPermission(Message, frozen=True):
    reason = Reason.GRANT_PERMISSION

    def text(self) -> str:
        return f"Grant the permission with {_GRANT}"


class FollowProfile(Message, frozen=True):
    reason = Reason.FOLLOW_PROFILE

    def text(self) -> str:
        return f"Set spec.profileUpdatePolicy of the node or its role to {UpdatePolicy.AUTOMATIC.value}"


class CheckOperator(Message, frozen=True):
    reason = Reason.CHECK_OPERATOR
    object: str

    def text(self) -> str:
        return f"Check why the service operator does not report {self.object} as available"


class SetPriority(Message, frozen=True):
    reason = Reason.SET_PRIORITY
    profiles: tuple[str, ...]

    def text(self) -> str:
        return f"Raise spec.priority of one of {listed(self.profiles)}"
