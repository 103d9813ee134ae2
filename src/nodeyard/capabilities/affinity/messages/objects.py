"""Messages that concern one object of ours, and those that are the same for all kinds."""

from __future__ import annotations

from typing import Final, TypeAlias

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.goformat import quote
from nodeyard.kube.names import PAUSED
from nodeyard.plan.message import Message
from nodeyard.plan.model import Action, ObjectRef

NAMED: Final = 10
"""How many names a text lists at most."""
Allowed: TypeAlias = tuple[str, ...] | None
"""The classes that a tenant allows; None if it allows all."""


class ObjectMessage(Message, frozen=True):
    """A message about a Tenant, an application, an ApplicationDefinition or an AffinityClass.

    The object is the root that a write is for, not always the object that is written.
    """

    object: ObjectRef


def root_of(action: Action) -> tuple[str, str]:
    """Return namespace and name of the root object that an action is for."""
    message = action.facts
    return (message.object.namespace, message.object.name) if isinstance(message, ObjectMessage) else ("", "")


def class_text(name: str) -> str:
    return f"{names.CLASS_KIND} {quote(name)}"


class FinalizerAdded(ObjectMessage, frozen=True):
    reason = Reason.FINALIZER_ADDED
    finalizer: str

    def text(self) -> str:
        return f"Adds finalizer {self.finalizer} to {self.object}"


class FinalizerRemoved(ObjectMessage, frozen=True):
    reason = Reason.FINALIZER_REMOVED
    finalizer: str

    def text(self) -> str:
        return f"Removes finalizer {self.finalizer} from {self.object}"


class Deleting(ObjectMessage, frozen=True):
    reason = Reason.DELETING

    def text(self) -> str:
        return f"{self.object} is being deleted"


class Paused(ObjectMessage, frozen=True):
    reason = Reason.PAUSED

    def text(self) -> str:
        return f"{self.object} is paused by annotation {PAUSED}"


class ServedElsewhere(Message, frozen=True):
    """An APIService serves tenants and applications; about a definition or a class."""

    reason = Reason.SERVED_BY_API_SERVICE
    kind: str = ""
    """The kind that a definition declares."""

    def text(self) -> str:
        what = f"kind {self.kind}" if self.kind else "its kinds"
        return (
            f"Not managed here: an APIService serves {names.APPS_GROUP}, so {what} and the HelmReleases belong to the "
            "platform. Pods are checked against the class on its HelmReleases. To serve the kinds here, delete "
            f"APIService {names.VERSION}.{names.APPS_GROUP}"
        )
