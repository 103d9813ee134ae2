"""The admission attributes of a write, and the interface of plugins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from nodeyard.apiserver import errors
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import GroupVersionKind, Resource
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import Work
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True)
class Attributes:
    """One write. `object` is None for DELETE, `old` for CREATE; both are in the version of the request."""

    operation: Operation
    resource: Resource
    version: str
    subresource: str
    namespace: str
    name: str
    object: Object | None
    old: Object | None
    user: User
    work: Work
    is_large: bool = False
    """True if `object` or `old` is so large that plugins work on it off the event loop."""
    dry_run: bool = False
    options: Object = field(default_factory=dict)
    """The CreateOptions, UpdateOptions, PatchOptions or DeleteOptions of the request."""
    kind: GroupVersionKind | None = None
    """The kind of `object` where it is not the resource's own: Eviction, Binding, Scale."""
    warnings: list[str] = field(default_factory=list)
    audit: dict[str, str] = field(default_factory=dict)
    """Audit annotations; see `annotate`."""

    @property
    def gvk(self) -> GroupVersionKind:
        return self.kind or self.resource.gvk(self.version)

    def annotate(self, key: str, value: str) -> None:
        """Add an audit annotation unless the key is annotated already or is no qualified name."""
        if not qualified_name_faults(key):
            self.audit.setdefault(key, value)

    def forbidden(self, why: str) -> ApiError:
        """A 403 that names the object, also one whose name is still to be generated."""
        metadata = (self.object or {}).get("metadata") or {}
        name = self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
        return errors.forbidden(self.resource.group, self.resource.plural, name, why)


class Plugin(Protocol):
    """An admission plugin; it refuses a write by raising ApiError."""

    async def mutate(self, attributes: Attributes) -> None:
        """Replace `attributes.object`."""

    async def validate(self, attributes: Attributes) -> None: ...


class Mutating:
    """Base class of plugins that do not validate."""

    async def validate(self, attributes: Attributes) -> None:
        return


class Validating:
    """Base class of plugins that do not mutate."""

    async def mutate(self, attributes: Attributes) -> None:
        return
