"""Messages about faults of annotations, fields, configuration, kinds and permissions."""

from __future__ import annotations

import msgspec

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.base import (
    KEPT,
    NodeServiceMessage,
    ProfileMessage,
    ServiceMessage,
    capitalize,
)
from nodeyard.capabilities.profiles.messages.choices import annotated
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.plan.message import Message, listed
from nodeyard.runtime.rbac import grant_remedy


class KeyConflict(Message, frozen=True):
    reason = Reason.KEY_CONFLICT
    key: str
    services: tuple[str, ...]

    def text(self) -> str:
        return (
            f"Annotation {self.key} is declared by the {names.SERVICE_KIND}s {listed(self.services)}, so none of them "
            "is used: give each its own spec.annotationKey"
        )


class UnknownService(Message, frozen=True):
    reason = Reason.UNKNOWN_SERVICE
    key: str

    def text(self) -> str:
        return f"Annotation {self.key} is ignored: no {names.SERVICE_KIND} declares it; another operator may use it"


class ServiceInvalid(Message, frozen=True):
    reason = Reason.SERVICE_INVALID
    error: str

    def text(self) -> str:
        return self.error


class CellChanged(NodeServiceMessage, frozen=True):
    reason = Reason.CELL_CHANGED
    from_: str = msgspec.field(name="from")
    to: str

    def text(self) -> str:
        return (
            f"{self.subject} is in cell {self.from_} and cannot move to {self.to}: set {names.CELL} back. To move it, "
            f"set {names.CELL} on the node to an empty value, which deletes its {names.COMPUTE_KIND}, then set the new "
            "cell when that object is gone"
        )


class CellInvalid(ServiceMessage, frozen=True, kw_only=True):
    reason = Reason.CELL_INVALID
    source: str
    node: str = ""
    role: str = ""
    cell: str
    error: str

    def text(self) -> str:
        where = annotated(self.source, self.node, self.role)
        return (
            f"Annotation {names.CELL} on {where} is {self.cell!r}, which is not a valid cell name: {self.error}. "
            "Set it to the name of the cell; a compute cannot change its cell later"
        )


class InheritanceFault(Message, frozen=True):
    """A field of a node that does not go together with its role."""

    node: str
    error: str
    """The complete sentence, without the node."""

    def text(self) -> str:
        return f"Node {self.node}: {self.error}"


class AttachmentsDiffer(InheritanceFault, frozen=True):
    reason = Reason.ATTACHMENTS_DIFFER


class VariablesInvalid(InheritanceFault, frozen=True):
    reason = Reason.VARS_INVALID


class ConfigurationInvalid(ProfileMessage, frozen=True):
    reason = Reason.CONFIG_INVALID
    error: str

    def text(self) -> str:
        # A node without a profile has configuration of its own.
        subject = self.named if self.profile else self.service
        return f"The configuration of {subject} is invalid: {self.error}. {capitalize(KEPT)}"


class ConfigurationWarning(ProfileMessage, frozen=True):
    reason = Reason.CONFIG_WARNING
    error: str

    def text(self) -> str:
        return f"The configuration of {self.named} may be a mistake: {self.error}"


class OwnedByOtherNode(NodeServiceMessage, frozen=True):
    reason = Reason.OTHER_NODE
    object: str

    def text(self) -> str:
        return f"{self.object} belongs to another node than {self.node} and is not changed: rename or delete it"


# kinds and permissions


class KindFault(ServiceMessage, frozen=True):
    """A kind of a service that cannot be watched."""

    error: str


class Forbidden(KindFault, frozen=True):
    reason = Reason.FORBIDDEN

    def text(self) -> str:
        return f"Nodeyard cannot manage {self.service}: {self.error}; {KEPT}"


class NotServed(KindFault, frozen=True):
    reason = Reason.NOT_SERVED

    def text(self) -> str:
        return f"Nodeyard cannot manage {self.service}: {self.error}. Install its CRD"


class NotNamespaced(KindFault, frozen=True):
    reason = Reason.NOT_NAMESPACED

    def text(self) -> str:
        return f"Nodeyard cannot manage {self.service}: {self.error}. Use namespaced kinds in the {names.SERVICE_KIND}"


class NamespaceNotGranted(NodeServiceMessage, frozen=True):
    reason = Reason.NAMESPACE_NOT_GRANTED
    namespace: str

    def text(self) -> str:
        return (
            f"{capitalize(self.subject)} needs a ConfigMap for its configuration, but Nodeyard may not write "
            f"ConfigMaps in namespace {self.namespace}: "
            f"{grant_remedy(names.CAPABILITY, names.CONFIGURATION_GRANT, self.namespace)}; {KEPT}"
        )


class SecretsNotGranted(ProfileMessage, frozen=True):
    reason = Reason.SECRETS_NOT_GRANTED
    namespace: str

    def text(self) -> str:
        return (
            f"{self.named} has spec.renderAs: Secret, but Nodeyard may not write Secrets in namespace "
            f"{self.namespace}. Set spec.renderAs to ConfigMap, or "
            f"{grant_remedy(names.CAPABILITY, names.SECRETS_GRANT, self.namespace)}; {KEPT}"
        )
