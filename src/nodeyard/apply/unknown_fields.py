"""Status fields that the installed CRD lacks.

If someone else's CRD is installed, a status field of ours fails strict validation, and would be pruned without it. The
server names such fields in its error. They are then left out of writes and comparisons, so that nothing is sent for
their sake alone. Every ten minutes they are sent again along with a write that is due anyway, since the CRD may have
been replaced.
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

RETRY_SECONDS: Final = 600.0

Path: TypeAlias = tuple[str, ...]

_STRICT = "strict decoding error"
_PATCH = "patch"
_UNKNOWN = re.compile(r'unknown field "status\.([^"]+)"')
_INDEX = re.compile(r"\[\d+\]")

log = get_logger("status")


class _Known(msgspec.Struct, frozen=True):
    paths: frozenset[Path]
    since: float


class UnknownFields:
    """The unknown fields by kind, for all its objects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kinds: dict[tuple[str, str], _Known] = {}

    def trim(self, ref: ObjectRef, status: Object) -> Object:
        """Return the status without the fields that its CRD is known to lack."""
        known = self._kinds.get((ref.api_version, ref.kind))
        for path in known.paths if known is not None else ():
            status = _without(status, path)
        return status

    def is_retry_due(self, ref: ObjectRef) -> bool:
        """Return True if the unknown fields should be sent again."""
        known = self._kinds.get((ref.api_version, ref.kind))
        return known is not None and self._clock.monotonic() - known.since >= RETRY_SECONDS

    def learn(self, ref: ObjectRef, error: ClientError) -> bool:
        """Record the unknown status fields that the error names. Returns False if it names none."""
        # The message quotes the patch, including our own texts, and ends with the error.
        causes = error.causes if isinstance(error, Invalid) else ()
        message = next((each.message for each in causes if each.field == _PATCH), "")
        found = _UNKNOWN.findall(message.rpartition(_STRICT)[2]) if _STRICT in message else []
        if not found:
            return False
        paths = frozenset(tuple(_INDEX.sub("", each).split(".")) for each in found)
        before = self._kinds.get((ref.api_version, ref.kind))
        known = before.paths if before is not None else frozenset()
        self._kinds[ref.api_version, ref.kind] = _Known(known | paths, self._clock.monotonic())
        if paths - known:
            log.warning("status fields dropped", kind=ref.kind, fields=sorted(found),
                        reason="the installed CRD lacks them: install the CRD of this version")  # fmt: skip
        return True

    def forget(self, ref: ObjectRef) -> None:
        """The server has accepted the whole status: no field is unknown."""
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
