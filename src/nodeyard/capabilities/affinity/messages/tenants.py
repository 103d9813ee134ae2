"""Messages about Tenants, their Namespaces and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.objects import NAMED, ObjectMessage
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.plan.layout import counted
from nodeyard.plan.message import listed


class TenantMessage(ObjectMessage, frozen=True):
    """A message about a Tenant."""

    @property
    def own(self) -> str:
        """Return the namespace of the tenant, which is not the one that the Tenant lives in."""
        return names.tenant_namespace(self.object.namespace, self.object.name)


# actions


class NamespaceApplied(TenantMessage, frozen=True):
    reason = Reason.NAMESPACE_APPLIED

    def text(self) -> str:
        return f"Applies Namespace {self.own} of {self.object}"


class ValuesApplied(TenantMessage, frozen=True):
    reason = Reason.VALUES_APPLIED

    def text(self) -> str:
        return f"Applies Secret {self.own}/{names.VALUES_SECRET} of {self.object}"


class NamespaceDeleted(TenantMessage, frozen=True):
    reason = Reason.NAMESPACE_DELETED
    left: Mapping[str, int] = {}
    """Number of objects of each counted kind that are deleted with it."""

    def text(self) -> str:
        return f"Deletes Namespace {self.own} of {self.object} with {_contents(self.left)}"


class NamespaceHeld(TenantMessage, frozen=True):
    reason = Reason.NAMESPACE_DELETION_HELD
    left: Mapping[str, int] = {}
    id: str = ""
    """The held plan; empty if the Tenant is not deleted yet."""

    def text(self) -> str:
        approve = f"run `{' '.join(filter(None, ('nodeyard approve', self.id)))}`"
        return (
            f"Deletion of {self.object} waits for approval: it deletes Namespace {self.own} with "
            f"{_contents(self.left)}. To proceed, {'delete what is counted, or ' if self.left else ''}{approve}"
        )


def _contents(left: Mapping[str, int]) -> str:
    """List what is deleted with a Namespace. The operator has no right to list, and count, kinds such as Secrets."""
    uncounted = "Secrets and other kinds are not counted"
    if not left:
        return f"everything in it (no PersistentVolumeClaims, workloads or single pods; {uncounted})"
    known = ", ".join(counted(number, kind) for kind, number in left.items())
    return f"{known} and everything else in it ({uncounted})"


# the Namespace and its values


class BadTenantName(TenantMessage, frozen=True):
    reason = Reason.BAD_NAME
    errors: Sequence[str]

    def text(self) -> str:
        return f"{self.object} cannot have a namespace: {'; '.join(self.errors)}. Recreate it under another name"


class ParentMissing(TenantMessage, frozen=True):
    reason = Reason.PARENT_MISSING
    missing: str
    """The namespace above the tenant."""

    def text(self) -> str:
        kind = names.TENANT_KIND
        return (
            f"{self.object} has no parent: namespace {self.missing} belongs to no {kind}. Create the {kind} of "
            f"{self.missing}, or create this one in the namespace of another tenant"
        )


class ParentNamespaceMissing(ParentMissing, frozen=True):
    def text(self) -> str:
        return f"{self.object} has no parent: namespace {self.missing} does not exist"


class ParentNamespaceForeign(ParentMissing, frozen=True):
    def text(self) -> str:
        return (
            f"{self.object} has no parent: namespace {self.missing} was not created for the {names.TENANT_KIND} of its "
            "name"
        )


class NamespaceConflict(TenantMessage, frozen=True):
    reason = Reason.NAME_CONFLICT
    of: str = ""
    """The uid of the Tenant that it was created for."""

    def text(self) -> str:
        whose = f"belongs to the {names.TENANT_KIND} with uid {self.of}" if self.of else "belongs to no tenant"
        return (
            f"Namespace {self.own} already exists and {whose}, so {self.object} does not use it. Delete it, choose "
            f"another name, or hand it over: kubectl annotate --overwrite namespace {self.own} "
            f"{names.TENANT}={self.object.uid}"
        )


class NamespaceTerminating(TenantMessage, frozen=True):
    reason = Reason.NAMESPACE_TERMINATING
    terminating: str
    """Its own namespace, or its parent's."""

    def text(self) -> str:
        return f"Namespace {self.terminating} is being deleted: {self.object} waits until it is gone"


class BadHost(TenantMessage, frozen=True):
    reason = Reason.BAD_HOST
    host: str
    errors: Sequence[str]
    is_own: bool
    """The host is the one in its spec, not derived from the parent's."""

    def text(self) -> str:
        remedy = "Set spec.host to another name" if self.is_own else "Set spec.host to a shorter name"
        return f"Host {self.host!r} of {self.object} is invalid: {'; '.join(self.errors)}. {remedy}"


class BadParentValues(TenantMessage, frozen=True):
    reason = Reason.BAD_PARENT_VALUES
    of: str
    """The namespace of the Secret that its values are rendered from."""
    error: str

    def text(self) -> str:
        return (
            f"Secret {self.own}/{names.VALUES_SECRET} is not updated: {names.VALUES_KEY} of its source, Secret "
            f"{self.of}/{names.VALUES_SECRET}, cannot be read: {self.error}"
        )


class NamespacePending(TenantMessage, frozen=True):
    reason = Reason.NAMESPACE_PENDING

    def text(self) -> str:
        return f"Namespace {self.own} does not exist yet"


class TenantReady(TenantMessage, frozen=True):
    reason = Reason.TENANT_READY

    def text(self) -> str:
        return f"Namespace {self.own} matches {self.object}"


class TenantServedElsewhere(TenantMessage, frozen=True):
    """An APIService serves Tenants."""

    reason = Reason.SERVED_BY_API_SERVICE

    def text(self) -> str:
        return (
            f"Not managed here: an APIService serves {names.APPS_GROUP}, so the namespace and values of {self.object} "
            "belong to the platform"
        )


# classes


class NotAllowedByParent(TenantMessage, frozen=True):
    reason = Reason.NOT_ALLOWED_BY_PARENT
    classes: tuple[str, ...]
    parent: str
    allowed: tuple[str, ...] = ()

    def text(self) -> str:
        within = f"allows only {listed(self.allowed, NAMED)}" if self.allowed else "allows no class"
        them = _them(self.classes)
        return (
            f"spec.allowedAffinityClasses of {self.object} has {listed(self.classes, NAMED)}, but its parent "
            f"{self.parent} {within}. Remove {them}, or allow {them} in the parent first"
        )


class DefaultNotAllowed(TenantMessage, frozen=True):
    reason = Reason.DEFAULT_NOT_ALLOWED
    default: str
    source: str
    """The namespace of the tenant that sets the default."""
    allowed: tuple[str, ...] = ()

    def text(self) -> str:
        among = (
            f"not one of the allowed classes {listed(self.allowed, NAMED)}"
            if self.allowed
            else ("not allowed: no class is")
        )
        whose = "" if self.source == self.own else f", inherited from {self.source},"
        remedy = 'one of them, or to "" for none' if self.allowed else '"" for none'
        return (
            f"The default class {self.default} of {self.object}{whose} is {among}. Set spec.defaultAffinityClass to "
            f"{remedy}; until then applications that name no class are rejected"
        )


class TenantClassesMissing(TenantMessage, frozen=True):
    reason = Reason.AFFINITY_CLASS_NOT_FOUND
    classes: tuple[str, ...]

    def text(self) -> str:
        them, do = _them(self.classes), "does" if len(self.classes) == 1 else "do"
        return (
            f"{self.object} names {names.CLASS_KIND} {listed(self.classes, NAMED)}, which {do} not exist. Create "
            f"{them}, or remove {them} from the spec"
        )


class ClassRevoked(TenantMessage, frozen=True):
    """A warning about a change of the Tenant."""

    reason = Reason.AFFINITY_CLASS_REVOKED
    affinity_class: str
    place: str
    """The namespace of the applications, here or below."""
    users: Sequence[str]

    def text(self) -> str:
        return (
            f"this change of {self.object} revokes {names.CLASS_KIND} {self.affinity_class} in {self.place}: "
            f"{listed(self.users, NAMED)} keep it, and their pods keep running where they are, until they name another "
            "class"
        )


class ClassesValid(TenantMessage, frozen=True):
    reason = Reason.CLASSES_VALID
    has_classes: bool

    def text(self) -> str:
        if self.has_classes:
            return f"All classes of {self.object} exist and are allowed"
        return f"{self.object} names no class of its own"


def _them(classes: Sequence[str]) -> str:
    return "it" if len(classes) == 1 else "them"


# deletion


class TenantInUse(TenantMessage, frozen=True):
    reason = Reason.TENANT_IN_USE
    children: Sequence[str] = ()
    applications: int = 0
    users: Sequence[str] = ()
    """The applications by kind and name, if they are known."""

    def text(self) -> str:
        parts = []
        if self.children:
            parts.append(f"{counted(len(self.children), 'tenant')} ({listed(self.children, NAMED)})")
        if self.applications:
            named = f" ({listed(self.users, NAMED)})" if self.users else ""
            parts.append(f"{counted(self.applications, 'application')}{named}")
        return f"{self.object} is in use by {' and '.join(parts)} in {self.own}: delete them first"


class ContentsUnknown(TenantMessage, frozen=True):
    reason = Reason.APPLICATIONS_UNWATCHED
    error: str

    def text(self) -> str:
        return f"{self.object} is not deleted: the contents of Namespace {self.own} are unknown: {self.error}"
