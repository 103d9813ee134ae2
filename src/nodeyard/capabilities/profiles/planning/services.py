"""One service of a node: its object and configuration brought to what was chosen, or left as they are, and why.

Whatever is unclear leaves what is deployed alone: a profile that is missing, a value that is none, a configuration that
does not parse, a cell that would change.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration.objects import SECRET, config_object
from nodeyard.capabilities.profiles.configuration.rendering import PROFILE, Rendered, files_of, hash_of, render
from nodeyard.capabilities.profiles.planning.availability import annotation, deadline_seconds, mapping, whole_number
from nodeyard.capabilities.profiles.planning.draft import ALONE, Draft, Undertaking, ref_to
from nodeyard.capabilities.profiles.planning.inheritance import Effective, inherited
from nodeyard.capabilities.profiles.planning.objects import (
    custom_config,
    is_going,
    is_made_for,
    is_of_another,
    is_ours,
    left_alone,
    profile_of,
    service_object,
)
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
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneRole, State, UpdatePolicy
from nodeyard.kube.json import Object
from nodeyard.kube.names import subdomain_faults
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef

_UNCLEAR = (State.NOT_FOUND, State.INVALID, State.AMBIGUOUS)


@dataclass(frozen=True)
class Wish:
    """What a service's object should be configured with."""

    resolution: Resolution
    rendered: Rendered
    is_pinned: bool = False


def node_ref(snapshot: NodeSnapshot) -> ObjectRef:
    return _ref(names.NODE_KIND, snapshot.node.metadata)


def role_ref(role: OpenStackDataPlaneRole) -> ObjectRef:
    return _ref(names.ROLE_KIND, role.metadata)


def _ref(kind: str, metadata: ObjectMeta) -> ObjectRef:
    return ObjectRef(
        api_version=names.DATAPLANE_API_VERSION,
        kind=kind,
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
    elif is_held(snapshot, service):
        draft.block(ref, Reason.ROLE_NOT_FOUND, facts_of(snapshot, resolution))
    elif wants_object(snapshot, resolution):
        _bring(draft, snapshot, resolution, effective, live)
    else:
        _remove(draft, snapshot, resolution, live)


def is_held(snapshot: NodeSnapshot, service: Service) -> bool:
    """Whether the object stays as it is because of a missing role: its cell, its key and its defaults may be the
    role's, which are not known and must not be taken away."""
    return service.name == names.NOVA and service.name in snapshot.objects and is_role_missing(snapshot)


def _remove(draft: Draft, snapshot: NodeSnapshot, resolution: Resolution, live: Object | None) -> None:
    """Nothing asks for it any more: what was made for the node goes, and only that."""
    service, facts = resolution.service, facts_of(snapshot, resolution)
    gone = "" if live is None or is_going(live) else _take_away(draft, snapshot, service, live, facts)
    for configuration in snapshot.configurations.get(service.name, ()):
        if not is_of_another(snapshot, configuration):
            draft.delete(configuration, Reason.CONFIGURATION_DELETED, facts, after=(gone,))


def _take_away(draft: Draft, snapshot: NodeSnapshot, service: Service, live: Object, facts: Object) -> str:
    """The object, or what we said on it where somebody else made it; the action's id, empty where there is nothing."""
    loss, disrupts = snapshot.losses.get(service.name), (snapshot.node.name,)
    undertaking = Undertaking(f"remove {service.name} {loss.taker}", loss.nodes) if loss else ALONE
    if is_made_for(snapshot.node.metadata, service, live):
        return draft.delete(live, Reason.OBJECT_DELETED, facts, disrupts=disrupts, undertaking=undertaking)
    body = left_alone(live)
    return draft.apply(live, body, Reason.OBJECT_LET_GO, facts, disrupts=disrupts, undertaking=undertaking)


def _bring(
    draft: Draft, snapshot: NodeSnapshot, resolution: Resolution, effective: Effective, live: Object | None
) -> None:
    service, ref = resolution.service, node_ref(snapshot)
    wanted_cell, source = _cell(snapshot, resolution)
    if faults := subdomain_faults(wanted_cell) if wanted_cell else ():
        facts = {"cell": wanted_cell, "source": source, "error": faults[0]}
        draft.block(ref, Reason.CELL_INVALID, facts_of(snapshot, resolution, **facts))
        return
    present_cell = str(mapping((live or {}).get("spec")).get("cellName") or "")
    if present_cell and wanted_cell and present_cell != wanted_cell:
        facts = facts_of(snapshot, resolution, **{"from": present_cell, "to": wanted_cell})
        draft.block(ref, Reason.CELL_CHANGED, facts)
        return
    for configuration in snapshot.configurations.get(service.name, ()):
        if is_of_another(snapshot, configuration):
            draft.block(ref, Reason.FOREIGN, facts_of(snapshot, resolution, object=str(ref_to(configuration))))
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
    present = {each["kind"]: each for each in snapshot.configurations.get(service.name, ())}
    kept = present.pop(configuration["kind"], None)
    first = draft.apply(kept, configuration, Reason.CONFIGURATION_WRITTEN, facts, is_first=kept is None)
    for each in present.values():
        draft.delete(each, Reason.CONFIGURATION_DELETED, facts, after=(first,))
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
    resolution, defaults = resolve(snapshot)[service_name], _defaults(snapshot, service_name)
    custom = custom_config(snapshot.objects.get(service_name))
    pinned = _pinned(snapshot, resolution)
    profile = pinned or resolution.profile
    rendered = render(resolution.service, snapshot.node.name, profile, custom, defaults)
    return Wish(replace(resolution, profile=profile), rendered, is_pinned=pinned is not None)


def _defaults(snapshot: NodeSnapshot, service_name: str) -> str:
    """What the node, or its role, has for the service whatever its profile."""
    nova = inherited(snapshot).section.nova if service_name == names.NOVA else None
    return "" if nova is None else nova.custom_service_config


def _pinned(snapshot: NodeSnapshot, resolution: Resolution) -> Profile | None:
    """The profile as the node has it, where it does not follow what has changed since."""
    profile, live = resolution.profile, snapshot.objects.get(resolution.service.name)
    if profile is None or live is None or _is_following(snapshot):
        return None
    if profile_of(live, resolution.service) != profile.name:
        return None
    text = _deployed_text(snapshot, resolution.service, live)
    if text is None or text == profile.config:
        return None
    generation = whole_number(annotation(live, names.GENERATION))
    return replace(profile, config=text, generation=profile.generation if generation is None else generation)


def _is_following(snapshot: NodeSnapshot) -> bool:
    """Whether changes of a profile reach the node. A role that is missing may have said that they do not."""
    if is_role_missing(snapshot) and not snapshot.node.wanted.profile_update_policy:
        return False
    return inherited(snapshot).update_policy == UpdatePolicy.AUTOMATIC


def _deployed_text(snapshot: NodeSnapshot, service: Service, live: Object) -> str | None:
    """The profile's part of the configuration that is there; None where that is not what was written."""
    for present in snapshot.configurations.get(service.name, ()):
        files = _files(present)
        text = files.get(PROFILE.format(service=service.name), "")
        whole = files_of(service, _defaults(snapshot, service.name), text, custom_config(live))
        if hash_of(files) == annotation(present, names.HASH) or hash_of(whole) == annotation(live, names.HASH):
            return text
    return None


def _files(configuration: Object) -> Mapping[str, str]:
    data = configuration.get("data") or {}
    if configuration["kind"] != SECRET:
        return data
    return {name: base64.b64decode(text).decode(errors="replace") for name, text in data.items()}


def _cell(snapshot: NodeSnapshot, resolution: Resolution) -> tuple[str, str]:
    """Which one, and who says so; empty where none."""
    found = cell(snapshot) if resolution.service.name == names.NOVA else None
    return ("", "") if found is None else (found[0], found[1].value)
