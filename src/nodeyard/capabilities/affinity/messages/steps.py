"""Messages for the steps that lead to a decision, as `why` lists them: tenant, owners, release, class, users."""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.objects import Allowed
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.names import PAUSED
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message


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
