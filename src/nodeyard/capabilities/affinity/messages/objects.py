"""Messages that concern one object of ours, and those that are the same for all kinds.

The last ones are the steps that lead to a decision, as `why` lists them: tenant, owners, release, class, users.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.goformat import quote
from nodeyard.kube.names import PAUSED
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message
from nodeyard.plan.model import Action, ObjectRef

NAMED: Final = 10
"""Number of names that a text lists at most."""
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


# steps of `why`


class TenantPolicy(Message, frozen=True):
    reason = Reason.TENANT_POLICY
    default: str = ""
    allowed: Allowed = None

    def text(self) -> str:
        within = "allows every class"
        if self.allowed is not None:
            within = f"allows {', '.join(self.allowed) or 'no class'}"
        return f"{within}; {f'default {self.default}' if self.default else 'no default'}"


class NoTenant(Message, frozen=True):
    reason = Reason.NO_TENANT
    namespace: str

    def text(self) -> str:
        return f"namespace {self.namespace} belongs to no tenant: every class is allowed"


class OwnedBy(Message, frozen=True):
    reason = Reason.OWNED_BY
    below: str

    def text(self) -> str:
        return f"owner of {self.below}"


class InstalledBy(Message, frozen=True):
    reason = Reason.INSTALLED_BY
    below: str

    def text(self) -> str:
        return f"installed {self.below} (label {names.FLUX_NAME})"


class ReleaseOf(Message, frozen=True):
    reason = Reason.RELEASE_OF
    application: str
    affinity_class: str
    is_recorded: bool
    """The Application has a record of the class; else it is from the label of the release."""
    previous: str | None = None
    """Previous classes that pods may have too; empty for none."""
    failure: str = ""

    def text(self) -> str:
        which = f"class {self.affinity_class}" if self.affinity_class else "no class"
        source = "" if self.is_recorded else " (from its label; the Application has no record)"
        also = "" if self.previous is None else f", also {self.previous or 'no class'} until the release is ready"
        failed = f"; not ready: {self.failure}" if self.failure else ""
        return f"release of {self.application}, {which}{source}{also}{failed}"


class ClassRequires(Message, frozen=True):
    reason = Reason.CLASS_REQUIRES
    node_selector: Mapping[str, str]
    terms: int
    """Number of required node affinity terms."""
    enforcement: str

    def text(self) -> str:
        parts = [f"{key}={value}" for key, value in sorted(self.node_selector.items())]
        if self.terms:
            parts.append(f"one of {counted(self.terms, 'node affinity term')}")
        return f"requires {' and '.join(parts) or 'nothing'}; enforcement {self.enforcement}"


class UsesClass(Message, frozen=True):
    reason = Reason.USES_CLASS
    affinity_class: str

    def text(self) -> str:
        return f"uses class {self.affinity_class}"


class EndPause(Message, frozen=True):
    """A remedy."""

    reason = Reason.END_PAUSE

    def text(self) -> str:
        return f"Remove the annotation {PAUSED}"
