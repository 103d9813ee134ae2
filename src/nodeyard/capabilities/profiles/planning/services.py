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
from nodeyard.capabilities.profiles.messages.actions import (
    ConfigurationDeleted,
    ConfigurationWritten,
    ObjectCreated,
    ObjectDeleted,
    ObjectReconfigured,
    ObjectReleased,
    ObjectUpdated,
)
from nodeyard.capabilities.profiles.messages.base import ServiceMessage
from nodeyard.capabilities.profiles.messages.choices import RoleSettingsUnknown
from nodeyard.capabilities.profiles.messages.faults import (
    CellChanged,
    CellInvalid,
    ConfigurationInvalid,
    NamespaceNotGranted,
    OwnedByOtherNode,
    SecretsNotGranted,
)
from nodeyard.capabilities.profiles.messages.states import Pinned
from nodeyard.capabilities.profiles.planning.builder import NO_GROUP, ApprovalGroup, PlanBuilder, ref_to
from nodeyard.capabilities.profiles.planning.configuration.drop_ins import PROFILE, Rendered, files_of, hash_of, render
from nodeyard.capabilities.profiles.planning.configuration.objects import SECRET, config_object
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
    BRIEF,
    annotation,
    as_mapping,
    config_annotations,
    deadline_seconds,
    find_stall,
    find_wait,
    is_brief,
    is_disruptive,
    whole_number,
)
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Profile, Service, memoize
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


def plan_service(builder: PlanBuilder, snapshot: NodeSnapshot, resolution: Resolution, effective: Effective) -> None:
    """Plan the object and the configuration of one service."""
    service, ref = resolution.service, node_ref(snapshot)
    kind_fault = snapshot.kind_faults.get(service.name)
    if kind_fault is not None:
        if resolution.state is not State.NONE:
            builder.block(ref, kind_fault)
        return
    if resolution.state in _UNCLEAR:
        builder.block(ref, resolution.message)
        return
    if not service.makes_object:
        return
    live, node = snapshot.objects.get(service.name), snapshot.node
    if live is not None and not is_for_node(snapshot, service, live):
        builder.block(ref, OwnedByOtherNode(service=service.name, node=node.name, object=str(ref_to(live))))
    elif awaits_role(snapshot, service):
        builder.block(ref, RoleSettingsUnknown(service=service.name, node=node.name, role=node.wanted.role))
    elif not snapshot.has_config_maps and (live is not None or wants_object(snapshot, resolution)):
        namespace = node.metadata.namespace
        builder.block(ref, NamespaceNotGranted(service=service.name, node=node.name, namespace=namespace))
    elif wants_object(snapshot, resolution):
        _reconcile_object(builder, snapshot, resolution, effective, live)
    else:
        _remove(builder, snapshot, resolution, live)


def awaits_role(snapshot: NodeSnapshot, service: Service) -> bool:
    """Check if a compute must stay unchanged because its role is missing.

    Its cell, SSH key and defaults may come from the role; without the role they are unknown and must not be removed.
    """
    return service.name == names.NOVA and service.name in snapshot.objects and is_role_missing(snapshot)


def _remove(builder: PlanBuilder, snapshot: NodeSnapshot, resolution: Resolution, live: Object | None) -> None:
    """Remove the object and configuration of a service that nothing requests any more."""
    service = resolution.service
    gone = "" if live is None or is_deleting(live) else _remove_object(builder, snapshot, service, live)
    message = ConfigurationDeleted(service=service.name, node=snapshot.node.name)
    for configuration in snapshot.configurations.get(service.name, ()):
        if not is_of_other_node(snapshot, configuration):
            builder.delete(configuration, message, after=(gone,))


def removal_group(service: str, cause: str) -> str:
    """Return the approval group of a removal that one edit causes on many nodes."""
    return f"remove {service} {cause}"


def _remove_object(builder: PlanBuilder, snapshot: NodeSnapshot, service: Service, live: Object) -> str:
    """Delete the object, or release it if Nodeyard did not create it; return the action id, or an empty string."""
    removal, node = snapshot.removals.get(service.name), snapshot.node.name
    group = (
        ApprovalGroup(removal_group(service.name, removal.cause), removal.nodes, removal.root) if removal else NO_GROUP
    )
    if is_created_for(snapshot.node.metadata, service, live):
        return builder.delete(live, ObjectDeleted(service=service.name, node=node), disrupts=(node,), group=group)
    released = ObjectReleased(service=service.name, node=node)
    return builder.apply(live, released_body(live), released, disrupts=(node,), group=group)


def _reconcile_object(
    builder: PlanBuilder, snapshot: NodeSnapshot, resolution: Resolution, effective: Effective, live: Object | None
) -> None:
    service, node, ref = resolution.service, snapshot.node, node_ref(snapshot)
    wanted_cell, source = _wanted_cell(snapshot, resolution)
    if fault := _cell_fault(snapshot, service, live, wanted_cell, source):
        builder.block(ref, fault)
        return
    for configuration in snapshot.configurations.get(service.name, ()):
        if is_of_other_node(snapshot, configuration):
            builder.block(
                ref, OwnedByOtherNode(service=service.name, node=node.name, object=str(ref_to(configuration)))
            )
            return
    desired = desired_config(snapshot, service.name)
    profile, hash = desired.resolution.profile, desired.rendered.hash
    if desired.is_pinned:
        pinned = Pinned(service=service.name, node=node.name, kind=service.profile_kind, profile=resolution.value)
        builder.block(ref, pinned)
    if desired.rendered.faults:
        error = "; ".join(str(fault) for fault in desired.rendered.faults)
        kind, chosen = service.profile_kind, resolution.value
        builder.block(ref, ConfigurationInvalid(service=service.name, kind=kind, profile=chosen, error=error))
        return
    if profile is not None and profile.render_as == SECRET and not snapshot.has_secrets:
        kind, namespace = service.profile_kind, node.metadata.namespace
        builder.block(
            ref, SecretsNotGranted(service=service.name, kind=kind, profile=profile.name, namespace=namespace)
        )
        return
    ignores, budget = service.name in snapshot.ignored, snapshot.budgets.get(service.name)
    is_disrupting = is_disruptive(live, hash, ignores=ignores)
    if is_disrupting and budget is not None:
        wait = find_wait(node.name, resolution, budget)
        if wait is not None:
            builder.waits_for.append(budget.name)
            if budget.due is not None and budget.due > builder.now:
                builder.wake(budget.due)
            if is_brief(wait, snapshot):
                builder.wake(builder.now + BRIEF)
            builder.block(ref, wait)
            return
        builder.reserves[budget.name] = hash
    body = service_object(
        snapshot,
        desired.resolution,
        effective,
        wanted_cell,
        config_annotations(live, desired.resolution, hash, builder),
    )
    _write(builder, snapshot, desired, body, live, is_disrupting=is_disrupting)
    stall = find_stall(builder, live, resolution, ignores=ignores)
    if stall is not None:
        builder.block(ref, stall)


def _cell_fault(
    snapshot: NodeSnapshot, service: Service, live: Object | None, wanted: str, source: str
) -> CellInvalid | CellChanged | None:
    """Return the fault of a cell that is not a name, or that differs from the one that the compute is in."""
    node = snapshot.node
    if faults := subdomain_faults(wanted) if wanted else ():
        role, error = node.wanted.role, faults[0]
        return CellInvalid(service=service.name, cell=wanted, source=source, node=node.name, role=role, error=error)
    present = str(as_mapping((live or {}).get("spec")).get("cellName") or "")
    if present and wanted and present != wanted:
        return CellChanged(service=service.name, node=node.name, from_=present, to=wanted)
    return None


def _write(
    builder: PlanBuilder,
    snapshot: NodeSnapshot,
    desired: DesiredConfig,
    body: Object,
    live: Object | None,
    *,
    is_disrupting: bool,
) -> None:
    """Write the configuration, then the service object that refers to it."""
    rendered, profile, service = desired.rendered, desired.resolution.profile, desired.resolution.service
    node = snapshot.node.name
    configuration = config_object(snapshot.node, service, rendered, profile.render_as if profile else "", None)
    present = {each["kind"]: each for each in snapshot.configurations.get(service.name, ())}
    kept = present.pop(configuration["kind"], None)
    written = ConfigurationWritten(service=service.name, node=node)
    first = builder.apply(kept, configuration, written, is_first=kept is None)
    for each in present.values():
        builder.delete(each, ConfigurationDeleted(service=service.name, node=node), after=(first,))
    kind, name = service.profile_kind, desired.resolution.value
    message: ServiceMessage = ObjectUpdated(service=service.name, node=node)
    if live is None:
        message = ObjectCreated(service=service.name, node=node, kind=kind, profile=name)
    elif annotation(live, names.HASH) != rendered.hash:
        message = ObjectReconfigured(service=service.name, node=node, kind=kind, profile=name, hash=rendered.hash)
    if not isinstance(message, ObjectUpdated):
        builder.wake(builder.now + timedelta(seconds=deadline_seconds(service, profile)))
    builder.apply(live, body, message, disrupts=(node,) if is_disrupting else (), after=(first,))


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
