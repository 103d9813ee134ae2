"""Messages about the choice of a node for a service, and its faults."""

from __future__ import annotations

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.base import KEPT, NodeServiceMessage, ProfileMessage
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import Source
from nodeyard.plan.message import Message, listed


def annotated(source: str, node: str, role: str) -> str:
    """Name the object whose annotation decides."""
    return f"role {role}" if source == Source.ROLE else f"node {node}"


class ChoiceMessage(ProfileMessage, frozen=True, kw_only=True):
    """The profile that a layer chooses for a service, or its fault."""

    key: str
    node: str = ""
    role: str = ""
    source: str = ""

    @property
    def annotated(self) -> str:
        return annotated(self.source, self.node, self.role)


class Chosen(ChoiceMessage, frozen=True, kw_only=True):
    """A choice without a fault, with the layers that it overrides."""

    shadowed: tuple[tuple[str, str], ...] = ()
    """Source and profile of each overridden layer."""
    waits: str = ""
    """Why the choice is not deployed yet."""

    def choice(self) -> str:
        """Return the text without what it overrides and waits for."""
        raise NotImplementedError

    def text(self) -> str:
        over = [
            f"{name} (spec.nodeSelector)" if source == Source.SELECTOR else f"{name or 'no profile'} (role {self.role})"
            for source, name in self.shadowed
        ]
        overriding = f", overriding {listed(over)}" if over else ""
        return f"{self.choice()}{overriding}{f'. {self.waits}' if self.waits else ''}"


class ChosenByNode(Chosen, frozen=True):
    reason = Reason.FROM_NODE

    def choice(self) -> str:
        return f"{self.named} is set by annotation {self.key} on {self.annotated}"


class ChosenByRole(Chosen, frozen=True):
    reason = Reason.FROM_ROLE

    def choice(self) -> str:
        return f"{self.named} is set by annotation {self.key} on {self.annotated}"


class ChosenBySelector(Chosen, frozen=True):
    reason = Reason.FROM_SELECTOR

    def choice(self) -> str:
        return f"{self.named} selects node {self.node} by spec.nodeSelector"


class Disabled(Chosen, frozen=True):
    """The annotation of the node is empty."""

    reason = Reason.DISABLED

    def choice(self) -> str:
        return f"Annotation {self.key} on {self.annotated} is empty: no {self.kind}"


class NoProfile(Chosen, frozen=True):
    """The annotation of the role is empty, or no layer is present."""

    reason = Reason.NONE

    def choice(self) -> str:
        if self.source == Source.ROLE:
            return f"Annotation {self.key} on {self.annotated} is empty: no {self.kind}"
        return f"Neither node {self.node} nor its role has annotation {self.key}: no {self.kind}"


# faults


class ProfileInvalid(ChoiceMessage, frozen=True):
    reason = Reason.INVALID
    error: str

    def text(self) -> str:
        return (
            f"Annotation {self.key} on {self.annotated} is {self.profile!r}, which is not the name of one {self.kind}: "
            f"{self.error}. Set it to one name, or to an empty value for no profile; {KEPT}"
        )


class ProfileNotFound(ChoiceMessage, frozen=True):
    reason = Reason.NOT_FOUND
    namespace: str

    def text(self) -> str:
        return (
            f"{self.named} does not exist in namespace {self.namespace}, but {self.key} on "
            f"{self.annotated} names it. Create the profile or name another; {KEPT}"
        )


class ProfileAmbiguous(ChoiceMessage, frozen=True):
    reason = Reason.AMBIGUOUS
    profiles: tuple[str, ...]
    priority: int

    def text(self) -> str:
        return (
            f"{listed(self.profiles)} select node {self.node} with the same spec.priority {self.priority}: raise the "
            f"priority of one, or annotate the node with {self.key}; {KEPT}"
        )


class RoleNotFound(Message, frozen=True):
    reason = Reason.ROLE_NOT_FOUND
    node: str
    role: str

    def text(self) -> str:
        return f"{_missing(self)}: create it, or change spec.role. Annotations on the node still apply"


class RoleSettingsUnknown(NodeServiceMessage, frozen=True):
    """The role of a node does not exist, and the service may inherit settings from it."""

    reason = Reason.ROLE_NOT_FOUND
    role: str

    def text(self) -> str:
        return f"{_missing(self)}: the settings that {self.service} inherits from it are unknown, so {KEPT}"


def _missing(message: RoleNotFound | RoleSettingsUnknown) -> str:
    return f"{names.ROLE_KIND} {message.role} (spec.role of node {message.node}) does not exist"
