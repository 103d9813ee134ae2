"""Status fields that the server's definition of a kind does not have.

Where somebody else's definition is installed, a field of ours is an error under strict validation, and would be dropped
without it. The server names such fields when it refuses; they are then left out, of what is compared too, so that
nothing is sent for their sake alone. From time to time they are offered again along with something that has to be
written anyway: the definition may have been replaced.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import msgspec

from nodeyard.client.errors import ClientError, Invalid
from nodeyard.kube.json import Json, Object
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

OFFER_SECONDS: Final = 600.0

Path: TypeAlias = tuple[str, ...]

_STRICT = "strict decoding error"
_UNKNOWN = re.compile(r'unknown field "status\.([^"]+)"')
_INDEX = re.compile(r"\[\d+\]")

log = get_logger("status")


class _Known(msgspec.Struct, frozen=True):
    paths: frozenset[Path]
    since: float


class Lacking:
    """By kind, for all of its objects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kinds: dict[tuple[str, str], _Known] = {}

    def trimmed(self, ref: ObjectRef, status: Object) -> Object:
        """The status without the fields that its definition is known to lack."""
        known = self._kinds.get((ref.api_version, ref.kind))
        for path in known.paths if known is not None else ():
            status = _without(status, path)
        return status

    def is_worth_offering(self, ref: ObjectRef) -> bool:
        """Whether it is long since the server was last asked to take them."""
        known = self._kinds.get((ref.api_version, ref.kind))
        return known is not None and self._clock.monotonic() - known.since >= OFFER_SECONDS

    def learn(self, ref: ObjectRef, error: ClientError) -> bool:
        """Whether the error names fields of the status that the definition lacks, and that are left out from now on."""
        if not isinstance(error, Invalid) or _STRICT not in error.message:
            return False
        found = _UNKNOWN.findall(error.message.rpartition(_STRICT)[2])
        paths = frozenset(tuple(_INDEX.sub("", each).split(".")) for each in found)
        before = self._kinds.get((ref.api_version, ref.kind))
        known = before.paths if before is not None else frozenset()
        self._kinds[ref.api_version, ref.kind] = _Known(known | paths, self._clock.monotonic())
        if paths - known:
            log.warning("leaving out status fields", kind=ref.kind, fields=sorted(found),
                        reason="the installed definition lacks them")  # fmt: skip
        return bool(paths)

    def taken(self, ref: ObjectRef) -> None:
        """The server has taken everything: nothing is lacking."""
        self._kinds.pop((ref.api_version, ref.kind), None)


def _without(value: Json, path: Path) -> Json:
    if isinstance(value, list):
        return [_without(item, path) for item in value]
    name, *rest = path
    if not isinstance(value, dict) or name not in value:
        return value
    if rest:
        return {**value, name: _without(value[name], tuple(rest))}
    return {key: member for key, member in value.items() if key != name}
