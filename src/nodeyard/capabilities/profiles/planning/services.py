"""One service of a node: its object and configuration brought to what was chosen, or left as they are, and why.

Whatever is unclear leaves what is deployed alone: a profile that is missing, a value that is none, a configuration that
does not parse, a cell that would change.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from datetime import timedelta

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration.objects import SECRET, config_object
from nodeyard.capabilities.profiles.configuration.rendering import PROFILE, Rendered, render
from nodeyard.capabilities.profiles.planning.availability import annotation, deadline_seconds
from nodeyard.capabilities.profiles.planning.draft import Draft, ref_to
from nodeyard.capabilities.profiles.planning.inheritance import Effective, inherited
from nodeyard.capabilities.profiles.planning.objects import custom_config, is_ours, profile_of, service_object
from nodeyard.capabilities.profiles.planning.resolution import (
    Resolution,
    cell,
    is_role_missing,
    resolve,
    wants_object,
)
from nodeyard.capabilities.profiles.planning.rollout import is_disturbing, take_turn, told, watch_progress
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Profile, Service, once
from nodeyard.capabilities.profiles.types import State, UpdatePolicy
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef

_UNCLEAR = (State.NOT_FOUND, State.INVALID, State.AMBIGUOUS)


@dataclass(frozen=True)
class Wish:
    """What a service's object should be configured with."""

    resolution: Resolution
    rendered: Rendered
    is_pinned: bool = False


def node_ref(snapshot: NodeSnapshot) -> ObjectRef:
    metadata = snapshot.node.metadata
    return ObjectRef(
        api_version=names.DATAPLANE_API_VERSION,
        kind=names.NODE_KIND,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )


def facts_of(snapshot: NodeSnapshot, resolution: Resolution, **more: object) -> Object:
    return {
        "node": snapshot.node.name,
        "service": resolution.service.name,
        "profile": resolution.value,
        **resolution.facts,
        **more,
    }


def keep(draft: Draft, snapshot: NodeSnapshot, resolution: Resolution, effective: Effective) -> None:
    """Bring one service of the node to what was chosen for it."""
    service, ref = resolution.service, node_ref(snapshot)
    trouble = snapshot.troubles.get(service.name)
    if trouble is not None:
        if resolution.state is not State.NONE:
            draft.block(ref, trouble.reason, facts_of(snapshot, resolution, error=trouble.message))
        return
    if resolution.state in _UNCLEAR:
        draft.block(ref, resolution.reason, facts_of(snapshot, resolution))
        return
    if not service.makes_object:
        return
    live = snapshot.objects.get(service.name)
    if live is not None and not is_ours(snapshot, service, live):
        draft.block(ref, Reason.FOREIGN, facts_of(snapshot, resolution, object=str(ref_to(live))))
    elif live is not None and is_role_missing(snapshot):
        # What it has from its role is not known, and must not be taken away.
        return
    elif wants_object(snapshot, resolution):
        _bring(draft, snapshot, resolution, effective, live)
    else:
        _remove(draft, snapshot, resolution, live)


def _remove(draft: Draft, snapshot: NodeSnapshot, resolution: Resolution, live: Object | None) -> None:
    """Nothing asks for it any more: what was made for the node goes, and only that."""
    service = resolution.service
    if live is not None and (live["metadata"].get("labels") or {}).get(names.SERVICE_LABEL) == service.name:
        draft.delete(live, Reason.OBJECT_DELETED, facts_of(snapshot, resolution))
    configuration = snapshot.configurations.get(service.name)
    if configuration is not None:
        draft.delete(configuration, Reason.CONFIGURATION_DELETED, facts_of(snapshot, resolution))


def _bring(
    draft: Draft, snapshot: NodeSnapshot, resolution: Resolution, effective: Effective, live: Object | None
) -> None:
    service, ref = resolution.service, node_ref(snapshot)
    wanted_cell = _cell(snapshot, resolution)
    present_cell = str(((live or {}).get("spec") or {}).get("cellName") or "")
    if present_cell and wanted_cell and present_cell != wanted_cell:
        facts = facts_of(snapshot, resolution, **{"from": present_cell, "to": wanted_cell})
        draft.block(ref, Reason.CELL_CHANGED, facts)
        return
    wish = wish_for(snapshot, service.name)
    if wish.is_pinned:
        draft.block(ref, Reason.PINNED, facts_of(snapshot, resolution))
    if wish.rendered.faults:
        errors = [str(fault) for fault in wish.rendered.faults]
        draft.block(ref, Reason.CONFIG_INVALID, facts_of(snapshot, resolution, error="; ".join(errors)))
        return
    budget = snapshot.budgets.get(service.name, Budget())
    turn = take_turn(live, wish.rendered.hash, budget)
    if turn.reason is not None:
        if budget.due is not None and budget.due > draft.now:
            draft.wake(budget.due)
        draft.block(ref, turn.reason, facts_of(snapshot, resolution, **(turn.facts or {})))
        return
    _write(draft, snapshot, wish, effective, wanted_cell, live)
    progress = watch_progress(draft, live, resolution)
    if progress.reason is Reason.STALLED:
        draft.block(ref, Reason.STALLED, facts_of(snapshot, resolution, **(progress.facts or {})))


def _write(
    draft: Draft, snapshot: NodeSnapshot, wish: Wish, effective: Effective, wanted_cell: str, live: Object | None
) -> None:
    resolution, rendered = wish.resolution, wish.rendered
    service, node = resolution.service, snapshot.node.metadata
    facts = facts_of(snapshot, resolution, hash=rendered.hash)
    profile = resolution.profile
    configuration = config_object(snapshot.node, service, rendered, profile.render_as if profile else "", None)
    present = snapshot.configurations.get(service.name)
    if present is not None and present["kind"] != configuration["kind"]:
        draft.delete(present, Reason.CONFIGURATION_DELETED, facts)
        present = None
    first = draft.apply(present, configuration, Reason.CONFIGURATION_WRITTEN, facts)
    body = service_object(snapshot, resolution, effective, wanted_cell, told(live, resolution, rendered.hash, draft))
    is_news = live is not None and annotation(live, names.HASH) != rendered.hash
    reason = Reason.OBJECT_CREATED if live is None else Reason.OBJECT_UPDATED
    if is_news or live is None:
        draft.wake(draft.now + timedelta(seconds=deadline_seconds(service, profile)))
    draft.apply(
        live,
        body,
        Reason.OBJECT_RECONFIGURED if is_news else reason,
        facts,
        disrupts=(node.name,) if is_disturbing(live, rendered.hash) else (),
        after=(first,),
    )


@once
def wish_for(snapshot: NodeSnapshot, service_name: str) -> Wish:
    """The configuration that the node should have for a service: the profile as it is, or as it is pinned."""
    resolution, effective = resolve(snapshot)[service_name], inherited(snapshot)
    service = resolution.service
    live, present = snapshot.objects.get(service.name), snapshot.configurations.get(service.name)
    pinned = _pinned(resolution, effective, live, present)
    profile = pinned or resolution.profile
    rendered = render(service, snapshot.node.name, profile, custom_config(live), _defaults(service, effective))
    is_behind = pinned is not None and resolution.profile is not None and pinned.config != resolution.profile.config
    return Wish(replace(resolution, profile=profile), rendered, is_behind)


def _defaults(service: Service, effective: Effective) -> str:
    """What the node, or its role, has for the service whatever its profile."""
    nova = effective.section.nova if service.name == names.NOVA else None
    return "" if nova is None else nova.custom_service_config


def _deployed_text(service: Service, present: Object) -> str:
    """The profile's part of a configuration that is there."""
    text = str((present.get("data") or {}).get(PROFILE.format(service=service.name), ""))
    return base64.b64decode(text).decode() if present["kind"] == SECRET else text


def _pinned(
    resolution: Resolution, effective: Effective, live: Object | None, present: Object | None
) -> Profile | None:
    """The profile as the node has it, where it does not follow: by the text that is deployed."""
    if effective.update_policy != UpdatePolicy.MANUAL or live is None or present is None:
        return None
    if resolution.profile is None or profile_of(live, resolution.service) != resolution.profile.name:
        return None
    generation = annotation(live, names.GENERATION)
    return replace(
        resolution.profile,
        config=_deployed_text(resolution.service, present),
        generation=int(generation) if generation.isdigit() else resolution.profile.generation,
    )


def _cell(snapshot: NodeSnapshot, resolution: Resolution) -> str:
    if resolution.service.name != names.NOVA:
        return ""
    found = cell(snapshot)
    return "" if found is None else found[0]
