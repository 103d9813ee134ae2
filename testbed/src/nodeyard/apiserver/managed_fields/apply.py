"""Server-side apply.

    check ─▶ merge into live ─▶ prune what it no longer sets ─▶ conflicts? ─▶ own

The applier owns what its configuration sets, shared with managers that own the same value already. Changing a value
that another manager owns is a conflict unless forced. An apply that changes neither values nor managers returns `live`
itself.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from nodeyard.apiserver.managed_fields.compare import Comparison, compare
from nodeyard.apiserver.managed_fields.conflicts import ApplyConflict, bad_request, conflicts_of, failure
from nodeyard.apiserver.managed_fields.fieldset import FieldSet, difference, includes, intersection, union, without
from nodeyard.apiserver.managed_fields.last_applied import KUBECTL, owned_by_kubectl, update_annotation
from nodeyard.apiserver.managed_fields.managers import (
    Identity,
    Managers,
    applier,
    entries_of,
    fields_of,
    managers_of,
    new_entry,
    remove_fields,
    with_fields,
)
from nodeyard.apiserver.managed_fields.merge import merge
from nodeyard.apiserver.managed_fields.owned_set import ensure_named_members, remove_items, to_field_set
from nodeyard.apiserver.managed_fields.paths import FIELD
from nodeyard.apiserver.managed_fields.scope import ResetFields, Scope, group_version_kind
from nodeyard.apiserver.managed_fields.type_check import format_faults, type_faults
from nodeyard.apiserver.managed_fields.type_shape import Shape, ShapeError
from nodeyard.apiserver.managed_fields.update import UNOWNED, managed_fields, update_managers, with_entries
from nodeyard.kube.json import Json, Object, json_equal
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
) -> Object:
    """Apply `config` to `live`, which is None on creation; the result is not defaulted.

    Raises ApplyConflict, and ApplyError for an invalid configuration.
    """
    scope = Scope(schema, api_version, manager, now, subresource, reset)
    _check(scope, live, config)
    try:
        try:
            result = _apply(scope, live, config, force=force)
        except ApplyConflict as conflict:
            if manager != KUBECTL or live is None:
                raise
            result = _apply_over_client_side(scope, live, config, conflict)
    except ShapeError as fault:
        raise failure(f"failed to merge config: {fault}") from fault
    return update_annotation(result, config) if manager == KUBECTL else result


def _check(scope: Scope, live: Object | None, config: Object) -> None:
    kind = live.get("kind") if live is not None else config.get("kind")
    if config.get("apiVersion") != scope.api_version or not kind or config.get("kind") != kind:
        raise bad_request(f"invalid object type: {group_version_kind(config)}")
    if managed_fields(config) is not None:
        raise bad_request("metadata.managedFields must be nil")
    faults = type_faults(scope.shape, config)
    if faults:
        what = f"{_named(config)}; {group_version_kind(config)}"
        raise failure(f"failed to create typed patch object ({what}): {format_faults(faults)}")


def _named(config: Object) -> str:
    metadata = config.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    return f"{given.get('namespace', '')}/{given.get('name', '')}"


def _apply_over_client_side(scope: Scope, live: Object, config: Object, conflict: ApplyConflict) -> Object:
    """Apply once more for kubectl: conflicts with its own client-side apply do not count."""
    held = owned_by_kubectl(scope, live)
    if not held:
        raise conflict
    beyond = conflict.beyond(held)
    if beyond:
        raise ApplyConflict(beyond)
    return _apply(scope, live, config, force=True)


def _apply(scope: Scope, live: Object | None, config: Object, *, force: bool) -> Object:
    base: Object = live if live is not None else {"apiVersion": scope.api_version, "kind": config["kind"]}
    recorded = managers_of(managed_fields(live))
    if live is not None and not recorded:
        recorded = update_managers(replace(scope, manager=BEFORE_FIRST_APPLY), None, live, {})
    managers = scope.current(config["kind"], recorded)
    identity = applier(scope.manager, scope.subresource)
    last = managers.get(identity)
    mine = without(to_field_set(scope.shape, config), scope.reset_fields)
    time = last.get("time") if last else None
    managers[identity] = new_entry(identity, scope.api_version, mine, time)
    merged = prune(scope, merge(scope.shape, base, config), managers, identity, last)
    comparison = compare(scope.shape, base, merged).excluding(scope.reset_fields)
    managers = _take_over(managers, identity, comparison, force=force)
    is_unchanged = json_equal(base, merged, by_value=True)
    if identity in managers and not is_unchanged:
        managers[identity] = new_entry(identity, scope.api_version, fields_of(managers[identity]), scope.time)
    return _with_managers(live, base if is_unchanged else merged, managers)


def prune(scope: Scope, merged: Object, managers: Managers, applier: Identity, last: Object | None) -> Object:
    """Remove what the applier's last configuration set and this one does not; `managers` has the new one already.

    A field stays if anybody else owns it. A named field goes with the last field in it: `spec.template`, unless
    someone owns a field there.
    """
    if last is None or not fields_of(last):
        return merged
    mine = managers.get(applier)
    if mine is not None and includes(fields_of(mine), fields_of(last)):
        return merged
    shape = scope.shape
    dropped = ensure_named_members(shape, fields_of(last))
    # Only top-level fields that it touched are walked: most of a node is its status.
    touched = {name: value for name, value in merged.items() if FIELD + name in dropped}
    rest = remove_items(shape, touched, dropped)
    # Version by version, that of the last configuration first, as structured-merge-diff does.
    owned: dict[str, FieldSet] = {last["apiVersion"]: {}}
    for entry in managers.values():
        owned[entry["apiVersion"]] = union(owned.get(entry["apiVersion"], {}), fields_of(entry))
    for fields in filter(None, owned.values()):
        rest = _add_back_owned(shape, touched, rest, fields)
    rest = _add_back_dangling(shape, touched, rest, dropped) or {}
    return {name: rest.get(name, value) for name, value in merged.items() if name in rest or name not in touched}


def _add_back_owned(shape: Shape, merged: Object, rest: Json, owned: FieldSet) -> Json:
    """Restore what is owned, also by the applier's new configuration."""
    kept = union(ensure_named_members(shape, to_field_set(shape, rest)), ensure_named_members(shape, owned))
    return remove_items(shape, merged, difference(ensure_named_members(shape, to_field_set(shape, merged)), kept))


def _add_back_dangling(shape: Shape, merged: Object, rest: Json, dropped: FieldSet) -> Json:
    """Restore what nobody owns: the applier did not own it either."""
    present = ensure_named_members(shape, to_field_set(shape, merged))
    gone = difference(present, ensure_named_members(shape, to_field_set(shape, rest)))
    return remove_items(shape, merged, intersection(gone, dropped))


def _take_over(managers: Managers, mine: Identity, comparison: Comparison, *, force: bool) -> dict[Identity, Object]:
    """Take changed and removed fields from all other managers; raise ApplyConflict if not forced."""
    changed = comparison.gained
    contested = {
        identity: disputed
        for identity, entry in managers.items()
        if identity != mine and (disputed := intersection(fields_of(entry), changed))
    }
    if contested and not force:
        raise ApplyConflict(conflicts_of(contested))
    settled = remove_fields(managers, union(changed, comparison.removed), but=mine)
    if mine in settled:
        own = difference(fields_of(settled[mine]), UNOWNED)
        if own:
            settled[mine] = with_fields(settled[mine], own)
        else:
            del settled[mine]
    return settled


def _with_managers(live: Object | None, result: Object, managers: Managers) -> Object:
    entries = entries_of(managers)
    if live is not None and result is live and managed_fields(live) == entries:
        return live
    return with_entries(result, entries)
