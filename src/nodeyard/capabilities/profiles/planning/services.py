"""Plan one service of a node: its service object and configuration, or the reason to keep them unchanged.

Every fault keeps the deployed state: a missing profile, an invalid value, a configuration that does not parse, a cell
that would change.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration.objects import SECRET, config_object
from nodeyard.capabilities.profiles.configuration.rendering import PROFILE, Rendered, files_of, hash_of, render
from nodeyard.capabilities.profiles.planning.availability import annotation, as_mapping, deadline_seconds, whole_number
from nodeyard.capabilities.profiles.planning.builder import NO_GROUP, ApprovalGroup, PlanBuilder, ref_to
from nodeyard.capabilities.profiles.planning.inheritance import Effective, effective_spec
from nodeyard.capabilities.profiles.planning.objects import (
    custom_config,
    is_created_for,
    is_deleting,
    is_for_node,
    is_of_other_node,
    profile_of,
    released_body,
    service_object,
)
from nodeyard.capabilities.profiles.planning.resolution import (
    Resolution,
    cell,
    is_role_missing,
    resolve,
    wants_object,
)
from nodeyard.capabilities.profiles.planning.rollout import (
    check_progress,
    config_annotations,
    is_disruptive,
    request_slot,
)
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Profile, Service, memoize
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneRole, State, UpdatePolicy
from nodeyard.kube.json import Object
from nodeyard.kube.names import subdomain_faults
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef

_UNCLEAR = (State.NOT_FOUND, State.INVALID, State.AMBIGUOUS)


@dataclass(frozen=True)
class DesiredConfig:
    """Desired configuration of a service object."""

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


def plan_service(draft: PlanBuilder, snapshot: NodeSnapshot, resolution: Resolution, effective: Effective) -> None:
    """Plan the object and the configuration of one service."""
    service, ref = resolution.service, node_ref(snapshot)
    kind_error = snapshot.kind_errors.get(service.name)
    if kind_error is not None:
        if resolution.state is not State.NONE:
            draft.block_with_facts(ref, kind_error.reason, facts_of(snapshot, resolution, error=kind_error.message))
        return
    if resolution.state in _UNCLEAR:
        draft.block_with_facts(ref, resolution.reason, facts_of(snapshot, resolution))
        return
    if not service.makes_object:
        return
    live = snapshot.objects.get(service.name)
    if live is not None and not is_for_node(snapshot, service, live):
        draft.block_with_facts(ref, Reason.OTHER_NODE, facts_of(snapshot, resolution, object=str(ref_to(live))))
    elif awaits_role(snapshot, service):
        draft.block_with_facts(ref, Reason.ROLE_NOT_FOUND, facts_of(snapshot, resolution))
    elif not snapshot.has_config_maps and (live is not None or wants_object(snapshot, resolution)):
        draft.block_with_facts(ref, Reason.NAMESPACE_NOT_GRANTED, facts_of(snapshot, resolution))
    elif wants_object(snapshot, resolution):
        _reconcile_object(draft, snapshot, resolution, effective, live)
    else:
        _remove(draft, snapshot, resolution, live)


def awaits_role(snapshot: NodeSnapshot, service: Service) -> bool:
    """Check if a compute must stay unchanged because its role is missing.

    Its cell, SSH key and defaults may come from the role; without the role they are unknown and must not be removed.
    """
    return service.name == names.NOVA and service.name in snapshot.objects and is_role_missing(snapshot)


def _remove(draft: PlanBuilder, snapshot: NodeSnapshot, resolution: Resolution, live: Object | None) -> None:
    """Remove the object and configuration of a service that nothing requests any more."""
    service, facts = resolution.service, facts_of(snapshot, resolution)
    gone = "" if live is None or is_deleting(live) else _remove_object(draft, snapshot, service, live, facts)
    for configuration in snapshot.configurations.get(service.name, ()):
        if not is_of_other_node(snapshot, configuration):
            draft.delete(configuration, Reason.CONFIGURATION_DELETED, facts, after=(gone,))


def removal_group(service: str, cause: str) -> str:
    """Return the approval group of a removal that one edit causes on many nodes."""
    return f"remove {service} {cause}"


def _remove_object(draft: PlanBuilder, snapshot: NodeSnapshot, service: Service, live: Object, facts: Object) -> str:
    """Delete the object, or release it if Nodeyard did not create it; return the action id, or an empty string."""
    removal, disrupts = snapshot.removals.get(service.name), (snapshot.node.name,)
    group = (
        ApprovalGroup(removal_group(service.name, removal.cause), removal.nodes, removal.root) if removal else NO_GROUP
    )
    if is_created_for(snapshot.node.metadata, service, live):
        return draft.delete(live, Reason.OBJECT_DELETED, facts, disrupts=disrupts, group=group)
    body = released_body(live)
    return draft.apply(live, body, Reason.OBJECT_RELEASED, facts, disrupts=disrupts, group=group)


def _reconcile_object(
    draft: PlanBuilder, snapshot: NodeSnapshot, resolution: Resolution, effective: Effective, live: Object | None
) -> None:
    service, ref = resolution.service, node_ref(snapshot)
    wanted_cell, source = _wanted_cell(snapshot, resolution)
    if faults := subdomain_faults(wanted_cell) if wanted_cell else ():
        facts = {"cell": wanted_cell, "source": source, "error": faults[0]}
        draft.block_with_facts(ref, Reason.CELL_INVALID, facts_of(snapshot, resolution, **facts))
        return
    present_cell = str(as_mapping((live or {}).get("spec")).get("cellName") or "")
    if present_cell and wanted_cell and present_cell != wanted_cell:
        facts = facts_of(snapshot, resolution, **{"from": present_cell, "to": wanted_cell})
        draft.block_with_facts(ref, Reason.CELL_CHANGED, facts)
        return
    for configuration in snapshot.configurations.get(service.name, ()):
        if is_of_other_node(snapshot, configuration):
            draft.block_with_facts(
                ref, Reason.OTHER_NODE, facts_of(snapshot, resolution, object=str(ref_to(configuration)))
            )
            return
    desired = desired_config(snapshot, service.name)
    if desired.is_pinned:
        draft.block_with_facts(ref, Reason.PINNED, facts_of(snapshot, resolution))
    if desired.rendered.faults:
        errors = [str(fault) for fault in desired.rendered.faults]
        draft.block_with_facts(ref, Reason.CONFIG_INVALID, facts_of(snapshot, resolution, error="; ".join(errors)))
        return
    if (
        desired.resolution.profile is not None
        and desired.resolution.profile.render_as == SECRET
        and not snapshot.has_secrets
    ):
        draft.block_with_facts(ref, Reason.SECRETS_NOT_GRANTED, facts_of(snapshot, resolution))
        return
    budget = snapshot.budgets.get(service.name, Budget())
    ignores = service.name in snapshot.ignored
    slot = request_slot(live, desired.rendered.hash, budget, ignores=ignores)
    if slot.reason is not None:
        draft.waits_for.append(budget.name)
        if budget.due is not None and budget.due > draft.now:
            draft.wake(budget.due)
        draft.block_with_facts(ref, slot.reason, facts_of(snapshot, resolution, **(slot.facts or {})))
        return
    if is_disruptive(live, desired.rendered.hash, ignores=ignores) and budget.name:
        draft.reserves[budget.name] = desired.rendered.hash
    _write_object(draft, snapshot, desired, effective, wanted_cell, live)
    progress = check_progress(draft, live, resolution, ignores=ignores)
    if progress.reason is Reason.STALLED:
        draft.block_with_facts(ref, Reason.STALLED, facts_of(snapshot, resolution, **(progress.facts or {})))


def _write_object(
    draft: PlanBuilder,
    snapshot: NodeSnapshot,
    desired: DesiredConfig,
    effective: Effective,
    wanted_cell: str,
    live: Object | None,
) -> None:
    resolution, rendered = desired.resolution, desired.rendered
    service, node = resolution.service, snapshot.node.metadata
    facts = facts_of(snapshot, resolution, hash=rendered.hash)
    profile = resolution.profile
    configuration = config_object(snapshot.node, service, rendered, profile.render_as if profile else "", None)
    present = {each["kind"]: each for each in snapshot.configurations.get(service.name, ())}
    kept = present.pop(configuration["kind"], None)
    first = draft.apply(kept, configuration, Reason.CONFIGURATION_WRITTEN, facts, is_first=kept is None)
    for each in present.values():
        draft.delete(each, Reason.CONFIGURATION_DELETED, facts, after=(first,))
    body = service_object(
        snapshot, resolution, effective, wanted_cell, config_annotations(live, resolution, rendered.hash, draft)
    )
    is_changed = live is not None and annotation(live, names.HASH) != rendered.hash
    reason = Reason.OBJECT_CREATED if live is None else Reason.OBJECT_UPDATED
    if is_changed or live is None:
        draft.wake(draft.now + timedelta(seconds=deadline_seconds(service, profile)))
    draft.apply(
        live,
        body,
        Reason.OBJECT_RECONFIGURED if is_changed else reason,
        facts,
        disrupts=(node.name,) if is_disruptive(live, rendered.hash, ignores=service.name in snapshot.ignored) else (),
        after=(first,),
    )


@memoize
def desired_config(snapshot: NodeSnapshot, service_name: str) -> DesiredConfig:
    """Return the desired configuration of a service: the current profile, or the pinned generation."""
    resolution, defaults = resolve(snapshot)[service_name], _defaults(snapshot, service_name)
    custom = custom_config(snapshot.objects.get(service_name))
    pinned = _pinned(snapshot, resolution)
    profile = pinned or resolution.profile
    rendered = render(resolution.service, snapshot.node.name, profile, custom, defaults)
    return DesiredConfig(replace(resolution, profile=profile), rendered, is_pinned=pinned is not None)


def _defaults(snapshot: NodeSnapshot, service_name: str) -> str:
    """Return the configuration of the node or its role that applies with any profile."""
    nova = effective_spec(snapshot).section.nova if service_name == names.NOVA else None
    return "" if nova is None else nova.custom_service_config


def _pinned(snapshot: NodeSnapshot, resolution: Resolution) -> Profile | None:
    """Return the profile with its deployed text, if the node does not follow later changes."""
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
    """Check if the node follows changes of its profile. A missing role may set Manual, so it counts as Manual."""
    if is_role_missing(snapshot) and not snapshot.node.wanted.profile_update_policy:
        return False
    return effective_spec(snapshot).update_policy == UpdatePolicy.AUTOMATIC


def _deployed_text(snapshot: NodeSnapshot, service: Service, live: Object) -> str | None:
    """Return the profile's part of the deployed configuration; None if it was edited by hand."""
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


def _wanted_cell(snapshot: NodeSnapshot, resolution: Resolution) -> tuple[str, str]:
    """Return the wanted cell and the layer that sets it; empty if none."""
    found = cell(snapshot) if resolution.service.name == names.NOVA else None
    return ("", "") if found is None else (found[0], found[1].value)
