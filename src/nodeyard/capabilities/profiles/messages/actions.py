"""Messages of actions: what a plan does, in the present tense."""

from __future__ import annotations

from nodeyard.capabilities.profiles.messages.base import NodeProfileMessage, NodeServiceMessage
from nodeyard.capabilities.profiles.reasons import Reason


class ObjectMessage(NodeProfileMessage, frozen=True):
    """An action that writes the choice of a node into its service object."""

    @property
    def with_profile(self) -> str:
        return f" with {self.named}" if self.profile else ""


class ObjectCreated(ObjectMessage, frozen=True):
    reason = Reason.OBJECT_CREATED

    def text(self) -> str:
        return f"Creates the service object of {self.subject}{self.with_profile}"


class ObjectUpdated(NodeServiceMessage, frozen=True):
    reason = Reason.OBJECT_UPDATED

    def text(self) -> str:
        return f"Updates the service object of {self.subject}"


class ObjectReconfigured(ObjectMessage, frozen=True):
    reason = Reason.OBJECT_RECONFIGURED
    hash: str

    def text(self) -> str:
        return f"Reconfigures {self.subject}{self.with_profile} (config hash {self.hash})"


class ObjectDeleted(NodeServiceMessage, frozen=True):
    reason = Reason.OBJECT_DELETED

    def text(self) -> str:
        return f"Deletes the service object of {self.subject}: nothing requests it any more"


class ObjectReleased(NodeServiceMessage, frozen=True):
    reason = Reason.OBJECT_RELEASED

    def text(self) -> str:
        return (
            f"Removes Nodeyard's fields from the service object of {self.subject}: nothing requests it any more. The "
            "object stays, because Nodeyard did not create it"
        )


class ConfigurationWritten(NodeServiceMessage, frozen=True):
    reason = Reason.CONFIGURATION_WRITTEN

    def text(self) -> str:
        return f"Writes the configuration of {self.subject}"


class ConfigurationDeleted(NodeServiceMessage, frozen=True):
    reason = Reason.CONFIGURATION_DELETED

    def text(self) -> str:
        return f"Deletes the configuration of {self.subject}"
