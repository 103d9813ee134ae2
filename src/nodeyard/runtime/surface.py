"""Interface between a capability and the dashboard: tiles, attention, rollouts, places, and the order of its rules.

The functions of a `Surface` read the view like `collect`: without I/O and on the event loop. They are called only while
a dashboard is served: `tile` once per changed node, the lists at most once a second while something changes. They reuse
the functions of planners and reports, so that the page never contradicts them. The structs are part of the dashboard's
wire form, in camelCase.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from nodeyard.plan.model import Decision, ObjectRef

if TYPE_CHECKING:
    from nodeyard.runtime.capability import View


class TileState(Enum):
    """The state of a node. Of several capabilities' states the first in this order is shown."""

    RELEASING = "releasing"
    DRAINING = "draining"
    NOT_READY = "notReady"
    PENDING = "pending"
    MIRRORED = "mirrored"
    CLAIMED = "claimed"
    SPARE = "spare"
    OTHER = "other"


class Severity(Enum):
    WARNING = "warning"
    CRITICAL = "critical"


class _Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the wire types: camelCase names, default values omitted."""


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of one capability about a node. Empty fields are left to other capabilities and the defaults: the server
    itself fills zone, draining and notReady."""

    state: TileState | None = None
    since: datetime | None = None
    """When the state began."""
    hue: str = ""
    """The name that decides the colour: a template or pool."""
    pool: str = ""
    template: str = ""
    placement_class: str = ""
    leaf: str = ""
    profile: str = ""
    free: float | None = None
    """The smallest free share of a mirrored node's resources, 0 to 1."""


class Attention(_Struct, frozen=True):
    """Something that a person should look at."""

    kind: str
    """HeldPlan, Shortage, Unplaced, SilentLeaf, StoppedRollout, Refused or OperatorGone. The server itself makes those
    of plans (HeldPlan, Refused) and operators (OperatorGone)."""
    severity: Severity
    object: ObjectRef
    reason: str
    message: str
    since: datetime | None = None
    link: dict[str, str] = {}
    """The view of the page to open, and its state: `{"view": "yard", "template": "gpu"}`. Empty: why of the object."""


class Blocker(_Struct, frozen=True):
    """An object that a rollout or drain waits for."""

    object: ObjectRef
    reason: str
    message: str
    since: datetime | None = None
    ways_out: tuple[str, ...] = ()


class Rollout(_Struct, frozen=True):
    """A pool, profile, leaf or drain that is on its way."""

    capability: str
    kind: str
    """Pool, Profile, Leaf or Drain."""
    object: ObjectRef
    done: int
    total: int
    state: str
    next: str = ""
    """The next step, as a sentence."""
    message: str = ""
    since: datetime | None = None
    blockers: tuple[Blocker, ...] = ()


class LeafResource(_Struct, frozen=True):
    """One resource of a leaf cluster, as plain numbers in `unit`."""

    resource: str
    base: float
    taken: float
    reserved: float
    free: float
    unit: str = ""


class Contact(_Struct, frozen=True):
    state: str
    message: str = ""
    since: datetime | None = None


class Leaf(_Struct, frozen=True):
    name: str
    capability: str
    contact: Contact
    resources: tuple[LeafResource, ...] = ()
    lease_age_seconds: float | None = None


class PlacementClass(_Struct, frozen=True):
    name: str
    nodes: int
    pods: int
    violators: tuple[ObjectRef, ...] = ()
    is_default: bool = False


class Refusal(_Struct, frozen=True):
    t: datetime
    object: ObjectRef
    message: str


class Tenant(_Struct, frozen=True):
    name: str
    classes: tuple[PlacementClass, ...] = ()
    refusals: tuple[Refusal, ...] = ()


class Places(_Struct, frozen=True):
    """Leaves and tenants; those of all capabilities are joined."""

    leaves: tuple[Leaf, ...] = ()
    tenants: tuple[Tenant, ...] = ()


class Rung(_Struct, frozen=True):
    """One rule of a ladder. Rules are checked from the first to the last; the decision's reason is the one that
    applied."""

    reason: str
    title: str
    """The rule as a short statement: "Enough nodes are claimed"."""


class Remedy(_Struct, frozen=True):
    """Something that would change a decision."""

    message: str
    command: str = ""
    """A shell command to copy; empty if there is none."""


def rungs(*rules: tuple[str, str]) -> tuple[Rung, ...]:
    """Build a ladder from pairs of reason and title."""
    return tuple(Rung(reason=str(reason), title=title) for reason, title in rules)


def patch_command(plural: str, name: str, patch: Any, namespace: str = "") -> str:
    """Return the kubectl command of a merge patch, quoted for a shell."""
    where = ["--namespace", namespace] if namespace else []
    body = msgspec.json.encode(patch).decode()
    return shlex.join(["kubectl", "patch", plural, name, *where, "--type=merge", "-p", body])


def _no_tile(_view: View, _name: str) -> Tile | None:
    return None


@dataclass(frozen=True)
class Surface:
    tile: Callable[[View, str], Tile | None] = _no_tile
    """Returns what the capability knows of the node with this name, in constant time; None if nothing."""
    tile_nodes: Mapping[str, Callable[[View, Any | None, Any | None], Iterable[str]]] = field(default_factory=dict)
    """By kind, as the view names it: the names of the nodes whose tile a change (old, new) of such an object may
    change, in constant time. A change of a Node concerns its own tile without being listed here."""
    attention: Callable[[View, datetime], Iterable[Attention]] = lambda _view, _now: ()
    rollouts: Callable[[View, datetime], Iterable[Rollout]] = lambda _view, _now: ()
    places: Callable[[View, datetime], Places] = lambda _view, _now: Places()
    ladders: Mapping[str, tuple[Rung, ...]] = field(default_factory=dict)
    """By kind of the decision's object: the rules in the order in which they are checked."""
    remedies: Callable[[View, Decision], Sequence[Remedy]] = lambda _view, _decision: ()
    """Advice that would change a decision, with commands; empty: the decision's own texts, without commands."""
    since: Callable[[View, Decision], datetime | None] = lambda _view, _decision: None
    """Since when a decision holds; None: the time of the object's condition with the same reason, if it has one."""
