"""Templates never change: another content is another template, and machines are replaced when a reference moves.

A pool keeps the template it has for as long as what the user asked for is the same, also when a newer generator would
write other defaults. What was made before we knew it is taken for what is asked for now. Templates that nothing refers
to any more are collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation import Template
from nodeyard.capabilities.pools.planning.applying import ref_to
from nodeyard.capabilities.pools.planning.observed import (
    bootstrap_of,
    control_plane_infrastructure,
    infrastructure_of,
)
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Management, TemplateMeta
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Object
from nodeyard.plan.diff import diff, diff_patch
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import ObjectRef, Verb, Write


@dataclass(frozen=True)
class Chosen:
    """The template to refer to."""

    kind: str
    name: str
    node_class: str
    action: str = ""
    """What makes it, or notes on it what it is made from; empty where it is there."""


def choose(draft: Draft, lc: LatticeCluster, management: Management, template: Template, current: tuple[str, str],
           after: Iterable[str] = ()) -> Chosen:  # fmt: skip
    """Keep the current template, by kind and name, or go over to another one."""
    live = management.template(*current)
    if live is not None and _is_kept(template, live):
        return _keep(draft, lc, template, live)
    action = "" if management.template(template.kind, template.name) else _create(draft, lc, template, after)
    return Chosen(template.kind, template.name, template.node_class, action)


def _is_kept(template: Template, live: TemplateMeta) -> bool:
    if live.metadata.deletion_timestamp is not None:
        return False
    inputs = live.metadata.annotations.get(names.INPUTS)
    return live.metadata.name == template.name or inputs in (template.inputs, None)


def _keep(draft: Draft, lc: LatticeCluster, template: Template, live: TemplateMeta) -> Chosen:
    rendered, known = template.render(lc)["metadata"], live.metadata.annotations
    wanted = rendered.get("annotations") or {}
    noted = {key: wanted.get(key) for key in (names.INPUTS, names.NODE_CLASS) if known.get(key) != wanted.get(key)}
    action = _note(draft, lc, live, noted, rendered.get("labels") or {}) if noted else ""
    return Chosen(live.kind, live.metadata.name, template.node_class, action)


def _create(draft: Draft, lc: LatticeCluster, template: Template, after: Iterable[str]) -> str:
    body = template.render(lc)
    facts = {"cluster": lc.name, "template": template.name, "class": template.node_class}
    return draft.act(
        Verb.APPLY,
        ref_to(body),
        Reason.TEMPLATE_CREATED,
        facts,
        Write(body=body),
        diff=diff(None, body),
        after=tuple(after),
    )


def _note(
    draft: Draft, lc: LatticeCluster, live: TemplateMeta, noted: Mapping[str, str | None], labels: Mapping[str, str]
) -> str:
    """Write on a template what it stands for now: one of before, or one whose content another wording asks for too."""
    is_adopted = names.INPUTS in live.metadata.annotations
    patch: Object = {"metadata": {"annotations": dict(noted)}}
    if not is_adopted:
        patch["metadata"]["labels"] = dict(labels)
    before = {"metadata": {"labels": live.metadata.labels, "annotations": live.metadata.annotations}}
    return draft.act(
        Verb.PATCH,
        _ref(live),
        Reason.TEMPLATE_NOTED if is_adopted else Reason.POOL_ADOPTED,
        {"cluster": lc.name, "template": live.metadata.name, "pool": live.metadata.labels.get(names.POOL, "")},
        Write(body=patch),
        diff=diff_patch(before, patch),
    )


def collect(draft: Draft, lc: LatticeCluster, management: Management, wanted: Iterable[tuple[str, str]]) -> None:
    """Delete our templates that neither this plan nor any set of machines refers to."""
    used = {*wanted, *_referred_to(management)}
    for template in management.templates:
        metadata = template.metadata
        is_ours = metadata.labels.get(names.CLUSTER) == lc.name and names.INPUTS in metadata.annotations
        if is_ours and metadata.deletion_timestamp is None and (template.kind, metadata.name) not in used:
            facts = {"cluster": lc.name, "template": metadata.name}
            draft.act(Verb.DELETE, _ref(template), Reason.TEMPLATE_COLLECTED, facts, Write())


def _referred_to(management: Management) -> Iterable[tuple[str, str]]:
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
