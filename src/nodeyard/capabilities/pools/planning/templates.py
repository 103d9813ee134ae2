"""Chooses templates. They are immutable: new content is a new template, and a new reference replaces Machines.

A pool keeps its template while the user's input is the same, even if a newer release would write other defaults. A
template without recorded inputs is treated as matching the current spec. Unreferenced templates are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.changes import (
    PoolAdopted,
    TemplateAnnotated,
    TemplateCreated,
    TemplateDeleted,
)
from nodeyard.capabilities.pools.planning.generation import Template
from nodeyard.capabilities.pools.planning.machine_state import (
    bootstrap_of,
    control_plane_infrastructure,
    infrastructure_of,
)
from nodeyard.capabilities.pools.planning.server_side_apply import ref_to
from nodeyard.capabilities.pools.snapshot import Management, TemplateMeta
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.diff import diff, diff_patch
from nodeyard.plan.model import ObjectRef, Verb, Write


@dataclass(frozen=True)
class ChosenTemplate:
    """The template to reference."""

    kind: str
    name: str
    node_class: str
    action: str = ""
    """The id of the action that creates it or records its inputs; empty if none is needed."""


def choose(
    builder: PlanBuilder,
    lc: LatticeCluster,
    management: Management,
    template: Template,
    current: tuple[str, str],
    after: Iterable[str] = (),
) -> ChosenTemplate:
    """Keep the current template, given by kind and name, or choose another one."""
    live = management.template(*current)
    if live is not None and _can_keep(template, live):
        return _keep(builder, lc, template, live)
    action = "" if management.template(template.kind, template.name) else _create(builder, lc, template, after)
    return ChosenTemplate(template.kind, template.name, template.node_class, action)


def _can_keep(template: Template, live: TemplateMeta) -> bool:
    if live.metadata.deletion_timestamp is not None:
        return False
    inputs = live.metadata.annotations.get(names.INPUTS)
    return live.metadata.name == template.name or inputs in (template.inputs, None)


def _keep(builder: PlanBuilder, lc: LatticeCluster, template: Template, live: TemplateMeta) -> ChosenTemplate:
    rendered, known = template.render(lc)["metadata"], live.metadata.annotations
    wanted = rendered.get("annotations") or {}
    changed = {key: wanted.get(key) for key in (names.INPUTS, names.NODE_CLASS) if known.get(key) != wanted.get(key)}
    action = _record_inputs(builder, lc, live, changed, rendered.get("labels") or {}) if changed else ""
    return ChosenTemplate(live.kind, live.metadata.name, template.node_class, action)


def _create(builder: PlanBuilder, lc: LatticeCluster, template: Template, after: Iterable[str]) -> str:
    body = template.render(lc)
    return builder.act(
        Verb.APPLY,
        ref_to(body),
        TemplateCreated(template=template.name),
        Write(body=body),
        diff=diff(None, body),
        after=tuple(after),
    )


def _record_inputs(
    builder: PlanBuilder,
    lc: LatticeCluster,
    live: TemplateMeta,
    changed: Mapping[str, str | None],
    labels: Mapping[str, str],
) -> str:
    """Record inputs on a template: an adopted one, or one whose content equals that of the new inputs."""
    is_adopted = names.INPUTS in live.metadata.annotations
    patch: Object = {"metadata": {"annotations": dict(changed)}}
    if not is_adopted:
        patch["metadata"]["labels"] = dict(labels)
    before = {"metadata": {"labels": live.metadata.labels, "annotations": live.metadata.annotations}}
    return builder.act(
        Verb.PATCH,
        _ref(live),
        TemplateAnnotated(template=live.metadata.name)
        if is_adopted
        else PoolAdopted(pool=labels.get(names.POOL, ""), cluster=lc.name),
        Write(body=patch),
        diff=diff_patch(before, patch),
    )


def delete_unused(
    builder: PlanBuilder, lc: LatticeCluster, management: Management, wanted: Iterable[tuple[str, str]]
) -> None:
    """Delete managed templates that no action, MachineDeployment, MachineSet or control plane references."""
    used = {*wanted, *_references(management)}
    for template in management.templates:
        metadata = template.metadata
        is_ours = metadata.labels.get(names.CLUSTER) == lc.name and names.INPUTS in metadata.annotations
        if is_ours and metadata.deletion_timestamp is None and (template.kind, metadata.name) not in used:
            builder.act(Verb.DELETE, _ref(template), TemplateDeleted(template=metadata.name), Write())


def _references(management: Management) -> Iterable[tuple[str, str]]:
    for deployment in management.deployments.values():
        yield bootstrap_of(deployment)
        yield infrastructure_of(deployment)
    for each in management.machine_sets:
        spec = each.spec.template.spec
        yield spec.bootstrap.config_ref.kind, spec.bootstrap.config_ref.name
        yield spec.infrastructure_ref.kind, spec.infrastructure_ref.name
    if management.control_plane is not None:
        yield control_plane_infrastructure(management.control_plane)


def _ref(template: TemplateMeta) -> ObjectRef:
    metadata = template.metadata
    return ObjectRef(
        api_version=template.api_version,
        kind=template.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )
