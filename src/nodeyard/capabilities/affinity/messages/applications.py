"""Messages about applications, their classes and their HelmReleases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.objects import NAMED, Allowed, ObjectMessage, class_text
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.plan.message import Message, listed


class ReleaseMessage(ObjectMessage, frozen=True):
    """A message about the HelmRelease of an application."""

    release: str

    @property
    def release_text(self) -> str:
        return f"{names.RELEASE_KIND} {self.object.namespace}/{self.release}"


# actions


class ReleaseApplied(ReleaseMessage, frozen=True):
    reason = Reason.RELEASE_APPLIED
    affinity_class: str = ""

    def text(self) -> str:
        placed = f" with {class_text(self.affinity_class)}" if self.affinity_class else ""
        return f"Applies {self.release_text} of {self.object}{placed}"


class ValuesCleared(ReleaseMessage, frozen=True):
    reason = Reason.VALUES_CLEARED

    def text(self) -> str:
        return f"Removes values and class labels from {self.release_text} that {self.object} does not set"


class ClassRecorded(ObjectMessage, frozen=True):
    reason = Reason.CLASS_RECORDED
    affinity_class: str = ""

    def text(self) -> str:
        which = class_text(self.affinity_class) if self.affinity_class else "no class"
        return f"Records {which} as the class of {self.object}"


class ClassChanged(ObjectMessage, frozen=True):
    reason = Reason.CLASS_CHANGED
    affinity_class: str
    previous: str = ""

    def text(self) -> str:
        before = class_text(self.previous) if self.previous else "no class"
        return (
            f"Changes {self.object} from {before} to {class_text(self.affinity_class)}: pods of both are admitted "
            "until its release is ready"
        )


class ClassRemoved(ObjectMessage, frozen=True):
    reason = Reason.CLASS_CHANGED

    def text(self) -> str:
        return f"Removes the class of {self.object}: its pods now follow spec.unownedPods of its tenants"


class ClassSettled(ReleaseMessage, frozen=True):
    reason = Reason.CLASS_SETTLED
    affinity_class: str

    def text(self) -> str:
        return (
            f"Completes the change of {self.object} to {class_text(self.affinity_class)}: {self.release_text} is "
            "ready, pods of the previous class are no longer admitted"
        )


# refusals


class ReservedKey(ObjectMessage, frozen=True):
    reason = Reason.RESERVED_KEY
    keys: Sequence[str]

    def text(self) -> str:
        return (
            f"spec of {self.object} has {listed(self.keys)}: keys that begin with '{names.RESERVED_PREFIX}' are "
            "reserved for the platform. Remove them"
        )


class BadApplicationName(ObjectMessage, frozen=True):
    reason = Reason.BAD_NAME
    errors: Sequence[str]

    def text(self) -> str:
        return f"{self.object} cannot be released under its name: {'; '.join(self.errors)}. Choose another name"


class ReleaseConflict(ReleaseMessage, frozen=True):
    reason = Reason.NAME_CONFLICT
    of: str = ""
    """The other owner."""

    def text(self) -> str:
        whose = f"belongs to {self.of}" if self.of else "lacks the labels of this application"
        return (
            f"{self.release_text} already exists and {whose}: {self.object} cannot be released. Choose another name, "
            "or delete that HelmRelease"
        )


class ReleaseNotServed(ObjectMessage, frozen=True):
    reason = Reason.HELM_RELEASE_NOT_SERVED

    def text(self) -> str:
        return (
            f"{self.object} cannot be released: the API server does not serve {names.RELEASE_KIND} in "
            f"{names.FLUX_API_VERSION}. Install Flux's helm-controller"
        )


class ReleasedOtherwise(ReleaseMessage, frozen=True):
    reason = Reason.RELEASED_UNDER_ANOTHER_NAME
    other: str
    """The HelmRelease that it has."""
    definition: str

    def text(self) -> str:
        return (
            f"{self.object} is already released as {names.RELEASE_KIND} {self.object.namespace}/{self.other}; "
            f"{self.release} would install it a second time. Restore spec.release.prefix of {names.DEFINITION_KIND} "
            f"{self.definition}, or delete that HelmRelease with everything it runs"
        )


class ReleasePending(ReleaseMessage, frozen=True):
    reason = Reason.RELEASE_PENDING

    def text(self) -> str:
        return f"{self.release_text} is not ready yet"


class FormerReleasePending(ReleaseMessage, frozen=True):
    reason = Reason.RELEASE_PENDING

    def text(self) -> str:
        return f"{self.release_text} belongs to an earlier application and is being deleted: {self.object} waits for it"


# the class


class ChosenByApplication(ObjectMessage, frozen=True):
    reason = Reason.CHOSEN_BY_APPLICATION
    affinity_class: str

    def text(self) -> str:
        return f"{self.object} sets spec.affinityClass to {class_text(self.affinity_class)}"


class KeptFromDefault(ObjectMessage, frozen=True):
    reason = Reason.KEPT_FROM_DEFAULT
    affinity_class: str
    adopted: str = ""
    """The HelmRelease whose label names the class; empty if the class is recorded."""

    def text(self) -> str:
        if self.adopted:
            return (
                f"{self.object} takes over {class_text(self.affinity_class)} from the labels of {names.RELEASE_KIND} "
                f"{self.adopted}, which exists already, until spec.affinityClass names another"
            )
        return (
            f"{self.object} keeps {class_text(self.affinity_class)}, the default when it was first released, until "
            "spec.affinityClass names another"
        )


class TenantDefault(ObjectMessage, frozen=True):
    reason = Reason.TENANT_DEFAULT
    affinity_class: str
    tenant: str = ""

    def text(self) -> str:
        return (
            f"{self.object} gets {class_text(self.affinity_class)}, the default of {_whose(self.tenant)}: "
            "spec.affinityClass is not set"
        )


class NoClass(ObjectMessage, frozen=True):
    reason = Reason.NO_CLASS
    why: Literal["kept", "declined", "no default"]
    adopted: str = ""
    """The HelmRelease that has no class; empty if that is recorded."""

    def text(self) -> str:
        match self.why:
            case "kept" if self.adopted:
                why = (
                    f"takes over {names.RELEASE_KIND} {self.adopted}, which exists already and has no class, and keeps "
                    "none until spec.affinityClass names one"
                )
            case "kept":
                why = "had no class when it was first released and keeps none until spec.affinityClass names one"
            case "declined":
                why = "has no class: spec.affinityClass is empty"
            case _:
                why = "has no class: spec.affinityClass is not set and there is no default"
        return f"{self.object} {why}"


class ClassMissing(ObjectMessage, frozen=True):
    reason = Reason.AFFINITY_CLASS_NOT_FOUND
    affinity_class: str
    is_deleting: bool = False
    is_only: bool = False
    """The tenant allows no other class."""

    def text(self) -> str:
        found, remedy = "not found", "Create the class"
        if self.is_deleting:
            found, remedy = "is being deleted", "Create it again once it is gone"
        other = "" if self.is_only else ", or set spec.affinityClass to another"
        return f"{class_text(self.affinity_class)} {found}: {self.object} needs it. {remedy}{other}"


class _Disallowed(ObjectMessage, frozen=True):
    """The tenant does not allow the class, or does not allow to have none."""

    tenant: str = ""
    allowed: Allowed = None
    allow_in: Sequence[str] = ()
    """The tenants whose list has to get the class, the topmost first; its own tenant if none is named."""

    @property
    def _allows(self) -> str:
        return f"{_whose(self.tenant)} allows {listed(self.allowed or (), NAMED) or 'no class'}"

    def _add(self, what: str = "a class") -> str:
        return f"add {what} to {_lists(self.allow_in, self.tenant)}"

    @property
    def _can_choose(self) -> bool:
        """Return whether the tenant allows every class, or at least one."""
        return self.allowed is None or bool(self.allowed)


class ClassNotAllowed(_Disallowed, frozen=True):
    reason = Reason.AFFINITY_CLASS_NOT_ALLOWED
    affinity_class: str = ""

    def text(self) -> str:
        remedy = "To use it,"
        if self._can_choose:
            remedy = "Set spec.affinityClass to an allowed class, or"
        return (
            f"{self.object} may not use {class_text(self.affinity_class)}: {self._allows}. {remedy} {self._add('it')}"
        )


class ClassRequired(_Disallowed, frozen=True):
    """The application has no class, and its tenant requires one."""

    reason = Reason.AFFINITY_CLASS_NOT_ALLOWED
    default: str = ""
    """The tenant's default, if spec.affinityClass is empty and the default can be used."""

    def text(self) -> str:
        if not self.default:
            remedy = "set spec.affinityClass to an allowed class" if self._can_choose else self._add()
            return f"{self.object} sets no class but must have one: {self._allows}. To fix it, {remedy}"
        remedy = f"name an allowed class, or remove the field to get the default {self.default}"
        return (
            f"spec.affinityClass of {self.object} is empty but a class is required: {self._allows}. To fix it, "
            f"{remedy if self._can_choose else self._add()}"
        )


class ClassWithdrawn(_Disallowed, frozen=True):
    reason = Reason.AFFINITY_CLASS_WITHDRAWN
    affinity_class: str = ""
    default: str = ""
    """The tenant's default, if the application has no class."""

    def text(self) -> str:
        has = class_text(self.affinity_class) if self.affinity_class else "no class"
        then = (
            "its pods keep running where they are"
            if self.affinity_class
            else "its pods follow spec.unownedPods of its tenants"
        )
        return (
            f"{self.object} still has {has}, which is no longer allowed: {self._allows}. {self._move}; until then "
            f"{then}"
        )

    @property
    def _move(self) -> str:
        """Return the way to an allowed class."""
        if not self._can_choose:
            return f"First {self._add()}"
        if not self.default:
            return "Set spec.affinityClass to an allowed class"
        return f"Remove spec.affinityClass to get the default {self.default}, or set it to an allowed class"


class DefaultUnusable(_Disallowed, frozen=True):
    reason = Reason.DEFAULT_NOT_ALLOWED
    affinity_class: str = ""
    error: str = ""

    def text(self) -> str:
        whose = _whose(self.tenant)
        remedy = f"To give {self.object} a class, {self._add()}"
        if self._can_choose:
            remedy = (
                f"Set spec.affinityClass of {self.object}, or spec.defaultAffinityClass of {whose}, to an allowed class"
            )
        return f"The default {class_text(self.affinity_class)} of {whose} cannot be used: {self.error}. {remedy}"


def _whose(tenant: str) -> str:
    return f"tenant {tenant}" if tenant else "its tenant"


def _lists(allow_in: Sequence[str], tenant: str = "") -> str:
    """Name the lists that have to get a class: a list that is inherited cannot allow more than the one above."""
    owners = f"tenants {', then '.join(allow_in)}" if len(allow_in) > 1 else _whose(*allow_in or (tenant,))
    return f"spec.allowedAffinityClasses of {owners}"


# enforcement


class SwitchingClass(ObjectMessage, frozen=True):
    reason = Reason.SWITCHING_CLASS
    affinity_class: str
    previous: str = ""

    def text(self) -> str:
        return (
            f"{self.object} is changing to {class_text(self.affinity_class)}: pods of {self.previous or 'no class'} "
            "are admitted too until its release is ready"
        )


class Enforced(Message, frozen=True):
    reason = Reason.ENFORCED
    affinity_class: str

    def text(self) -> str:
        return f"Pods outside {class_text(self.affinity_class)} are denied"


class NotEnforced(Message, frozen=True):
    reason = Reason.NOT_ENFORCED
    affinity_class: str
    enforcement: str

    def text(self) -> str:
        return (
            f"Not enforced: enforcement of {class_text(self.affinity_class)} is {self.enforcement} here, so pods "
            "outside it are admitted"
        )


class WebhooksNotRegistered(Message, frozen=True):
    reason = Reason.WEBHOOKS_NOT_REGISTERED

    def text(self) -> str:
        return "Not enforced: the pod webhook is not registered (run with --webhook-bind)"


# remedies


class ChooseAllowedClass(Message, frozen=True):
    reason = Reason.CHOOSE_ALLOWED_CLASS
    tenant: str = ""
    allowed: Allowed = None

    def text(self) -> str:
        if self.allowed:
            return f"Set spec.affinityClass to one of {listed(self.allowed, NAMED)}"
        once = "" if self.allowed is None else f", once {_whose(self.tenant)} allows one"
        return f"Set spec.affinityClass to another class{once}"


class AllowClassInTenant(Message, frozen=True):
    reason = Reason.ALLOW_CLASS_IN_TENANT
    affinity_class: str
    allow_in: Sequence[str]

    def text(self) -> str:
        return f"Add {self.affinity_class} to {_lists(self.allow_in)}"


class CreateClass(Message, frozen=True):
    reason = Reason.CREATE_CLASS
    affinity_class: str

    def text(self) -> str:
        return f"Create {class_text(self.affinity_class)}"
