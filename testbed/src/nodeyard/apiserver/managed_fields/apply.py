"""Server-side apply: a configuration says what its manager wants, and only that.

    check ─▶ merge into live ─▶ prune what it no longer says ─▶ conflicts? ─▶ own

What the configuration sets becomes the applier's, together with everyone who already owns the same value. Changing what
someone else owns is a conflict unless forced. An apply that changes neither values nor owners returns `live` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from nodeyard.apiserver.managed_fields.compare import Comparison, compare
from nodeyard.apiserver.managed_fields.conflicts import ApplyConflict, bad_request, conflicts_of, failure
from nodeyard.apiserver.managed_fields.faults import summary, typing_faults
from nodeyard.apiserver.managed_fields.fieldset import difference, intersection, union, without
from nodeyard.apiserver.managed_fields.last_applied import KUBECTL, annotated, held_by_kubectl
from nodeyard.apiserver.managed_fields.managers import (
    Identity,
    Managers,
    applier,
    dispossess,
    entries_of,
    fields_of,
    managers_of,
    new_entry,
    with_fields,
)
from nodeyard.apiserver.managed_fields.merge import merge
from nodeyard.apiserver.managed_fields.owned_set import extent
from nodeyard.apiserver.managed_fields.prune import pruned
from nodeyard.apiserver.managed_fields.scope import ResetFields, Scope, group_version_kind
from nodeyard.apiserver.managed_fields.type_shape import ShapeError
from nodeyard.apiserver.managed_fields.update import UNOWNED, managed_fields, updated, with_entries
from nodeyard.kube.json import Object, json_equal
from nodeyard.schema.model import Schema

BEFORE_FIRST_APPLY = "before-first-apply"


def apply(
    schema: Schema,
    live: Object | None,
    config: Object,
    *,
    manager: str,
    force: bool,
    api_version: str,
    now: datetime,
    subresource: str = "",
    reset: ResetFields = (),
    versions: Mapping[str, Schema] | None = None,
) -> Object:
    """The object that `config` makes of `live` (None where there is none yet), not yet defaulted.

    Raises ApplyConflict, and ApplyError for a configuration that cannot be applied to anything.
    """
    scope = Scope(schema, api_version, manager, now, subresource, reset, versions)
    _check(scope, live, config)
    try:
        try:
            result = _applied(scope, live, config, force=force)
        except ApplyConflict as conflict:
            if manager != KUBECTL or live is None:
                raise
            result = _adopted(scope, live, config, conflict)
    except ShapeError as fault:
        raise failure(f"failed to merge config: {fault}") from fault
    return annotated(result, config) if manager == KUBECTL else result


def _check(scope: Scope, live: Object | None, config: Object) -> None:
    kind = live.get("kind") if live is not None else config.get("kind")
    if config.get("apiVersion") != scope.api_version or not kind or config.get("kind") != kind:
        raise bad_request(f"invalid object type: {group_version_kind(config)}")
    if managed_fields(config) is not None:
        raise bad_request("metadata.managedFields must be nil")
    faults = typing_faults(scope.shape, config)
    if faults:
        what = f"{_named(config)}; {group_version_kind(config)}"
        raise failure(f"failed to create typed patch object ({what}): {summary(faults)}")


def _named(config: Object) -> str:
    metadata = config.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    return f"{given.get('namespace', '')}/{given.get('name', '')}"


def _adopted(scope: Scope, live: Object, config: Object, conflict: ApplyConflict) -> Object:
    """A second try for kubectl: conflicts only with its own client-side past are none."""
    held = held_by_kubectl(scope, live)
    if not held:
        raise conflict
    beyond = conflict.beyond(held)
    if beyond:
        raise ApplyConflict(beyond)
    return _applied(scope, live, config, force=True)


def _applied(scope: Scope, live: Object | None, config: Object, *, force: bool) -> Object:
    base: Object = live if live is not None else {"apiVersion": scope.api_version, "kind": config["kind"]}
    standing = managers_of(managed_fields(live))
    if live is not None and not standing:
        standing = updated(replace(scope, manager=BEFORE_FIRST_APPLY), None, live, {})
    managers = scope.current(config["kind"], standing)
    identity = applier(scope.manager, scope.subresource)
    last = managers.get(identity)
    mine = without(extent(scope.shape, config), scope.reset_fields)
    time = last.get("time") if last else None
    managers[identity] = new_entry(identity, scope.api_version, mine, time)
    merged = pruned(scope, merge(scope.shape, base, config), managers, identity, last)
    comparison = compare(scope.shape, base, merged).excluding(scope.reset_fields)
    managers = _settled(managers, identity, comparison, force=force)
    is_unchanged = json_equal(base, merged, by_value=True)
    if identity in managers and not is_unchanged:
        managers[identity] = new_entry(identity, scope.api_version, fields_of(managers[identity]), scope.time)
    return _recorded(live, base if is_unchanged else merged, managers)


def _settled(managers: Managers, mine: Identity, comparison: Comparison, *, force: bool) -> dict[Identity, Object]:
    """Everyone else gives up what the configuration changed or removed, if it may."""
    changed = comparison.gained
    contested = {
        identity: disputed
        for identity, entry in managers.items()
        if identity != mine and (disputed := intersection(fields_of(entry), changed))
    }
    if contested and not force:
        raise ApplyConflict(conflicts_of(contested))
    settled = dispossess(managers, union(changed, comparison.removed), but=mine)
    if mine in settled:
        own = difference(fields_of(settled[mine]), UNOWNED)
        if own:
            settled[mine] = with_fields(settled[mine], own)
        else:
            del settled[mine]
    return settled


def _recorded(live: Object | None, result: Object, managers: Managers) -> Object:
    entries = entries_of(managers)
    if live is not None and result is live and managed_fields(live) == entries:
        return live
    return with_entries(result, entries)
