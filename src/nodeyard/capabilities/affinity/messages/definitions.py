"""Messages about ApplicationDefinitions and their CRDs."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.objects import NAMED, ObjectMessage
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message, listed

# actions


class DefinitionServed(ObjectMessage, frozen=True):
    reason = Reason.DEFINITION_SERVED
    crd: str
    kind: str

    def text(self) -> str:
        return f"Applies CRD {self.crd} of {self.object} for kind {self.kind}"


class DefinitionClosing(ObjectMessage, frozen=True):
    reason = Reason.DEFINITION_CLOSED
    crd: str

    def text(self) -> str:
        return f"Closes CRD {self.crd} of {self.object} for new objects, before it is deleted"


class DefinitionWithdrawn(ObjectMessage, frozen=True):
    reason = Reason.DEFINITION_WITHDRAWN
    crd: str
    kind: str

    def text(self) -> str:
        return f"Deletes CRD {self.crd} of {self.object}: there is no {self.kind} left"


# faults


class InvalidDefinition(ObjectMessage, frozen=True):
    reason = Reason.INVALID_DEFINITION
    errors: Sequence[str]

    def text(self) -> str:
        return f"{self.object} cannot be served: {'; '.join(self.errors)}"


class InvalidSchema(ObjectMessage, frozen=True):
    reason = Reason.INVALID_SCHEMA
    error: str

    def text(self) -> str:
        return (
            f"spec.application.openAPISchema of {self.object} is not a valid schema: {self.error}. The CRD stays as it "
            "is"
        )


class SchemaSimplified(Message, frozen=True):
    reason = Reason.SCHEMA_SIMPLIFIED
    kind: str
    left_out: Sequence[str]

    def text(self) -> str:
        return (
            f"Kind {self.kind} is served without {listed(self.left_out)}: a CRD schema cannot express these, so the "
            "API server does not check them"
        )


class DuplicateDefinition(ObjectMessage, frozen=True):
    reason = Reason.DUPLICATE_DEFINITION
    kind: str
    rivals: Sequence[str]

    def text(self) -> str:
        return (
            f"Kind {self.kind} or its plural is already declared by the older {names.DEFINITION_KIND} "
            f"{listed(self.rivals)}: choose another kind and plural for {self.object}"
        )


class CRDNotManaged(ObjectMessage, frozen=True):
    reason = Reason.CRD_NOT_MANAGED
    crd: str
    by: str

    def text(self) -> str:
        return (
            f"CRD {self.crd} was created by {self.by} and is used as it is: spec.application.openAPISchema of "
            f"{self.object} is not applied"
        )


class ApplicationsUnwatched(Message, frozen=True):
    reason = Reason.APPLICATIONS_UNWATCHED
    kind: str
    error: str

    def text(self) -> str:
        return f"Applications of kind {self.kind} cannot be watched: {self.error}"


class DefinitionInUse(ObjectMessage, frozen=True):
    reason = Reason.DEFINITION_IN_USE
    kind: str
    applications: int
    users: Sequence[str] = ()

    def text(self) -> str:
        named = f" ({listed(self.users, NAMED)})" if self.users else ""
        return (
            f"{self.object} is in use by {counted(self.applications, 'application')} of kind {self.kind}{named}: "
            "delete them first, deleting the CRD would delete them all"
        )


# states


class DefinitionClosed(ObjectMessage, frozen=True):
    reason = Reason.DEFINITION_CLOSED
    crd: str
    kind: str

    def text(self) -> str:
        return (
            f"{self.object} is being deleted: CRD {self.crd} rejects new {self.kind} objects, and is deleted in a few "
            "seconds if it has none"
        )


class Establishing(Message, frozen=True):
    reason = Reason.ESTABLISHING
    crd: str
    error: str = ""

    def text(self) -> str:
        error = f": {self.error}" if self.error else ""
        return f"Waiting for the API server to serve CRD {self.crd}{error}"


class Served(Message, frozen=True):
    reason = Reason.SERVED
    kind: str

    def text(self) -> str:
        return f"Kind {self.kind} is served in {names.APPS_API_VERSION}"
