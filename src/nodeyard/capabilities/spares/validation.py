"""Validation of templates, with errors in the API server's format.

The CRD schema rejects most of this. Templates admitted by an older or missing schema are rejected here and block no
other template.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import NodeTemplate, ReleasePolicy
from nodeyard.kube.fields import FieldError, child, duplicate, forbidden, index, invalid, not_supported, required
from nodeyard.kube.names import LABEL_VALUE_MAX, label_value_faults, qualified_name_faults
from nodeyard.kube.objects import Taint
from nodeyard.kube.selectors import object_errors
from nodeyard.kube.taints import EFFECTS

_LABELS = "spec.template.metadata.labels"
_ANNOTATIONS = "spec.template.metadata.annotations"
_TAINTS = "spec.template.spec.taints"


def faults(template: NodeTemplate) -> list[FieldError]:
    """Return all errors of a template; empty if it can be planned."""
    return [*_name_errors(template.name), *_spec_errors(template), *_template_errors(template)]


def _name_errors(name: str) -> Iterator[FieldError]:
    if len(name) > LABEL_VALUE_MAX:
        yield invalid(
            "metadata.name", name, f"must be no more than {LABEL_VALUE_MAX} characters: it becomes a label value"
        )
    if name in names.RESERVED_NAMES:
        yield invalid("metadata.name", name, f"{names.role_label(name)} has another meaning")


def _spec_errors(template: NodeTemplate) -> Iterator[FieldError]:
    spec = template.spec
    if spec.selector is None:
        yield required("spec.selector")
    yield from object_errors(template.selector_object, "spec.selector")
    if spec.nodes < 0:
        yield invalid("spec.nodes", spec.nodes, "must be greater than or equal to 0")
    if spec.dry_run is not None and spec.dry_run_spelled is not None and spec.dry_run != spec.dry_run_spelled:
        yield invalid("spec.dry-run", spec.dry_run_spelled, "must agree with spec.dryRun")
    policies = [policy.value for policy in ReleasePolicy]
    if spec.release_policy not in policies:
        yield not_supported("spec.releasePolicy", spec.release_policy, policies)
    evict_after = spec.release.evict_after_seconds
    if evict_after is not None and evict_after < 0:
        yield invalid("spec.release.evictAfterSeconds", evict_after, "must be greater than or equal to 0")
    if key := spec.spread.topology_key:
        yield from (invalid("spec.spread.topologyKey", key, fault) for fault in qualified_name_faults(key))


def _template_errors(template: NodeTemplate) -> Iterator[FieldError]:
    metadata = template.spec.template.metadata
    yield from _map_errors(_LABELS, metadata.labels, names.RESERVED_LABELS, label_value_faults)
    yield from _map_errors(_ANNOTATIONS, metadata.annotations, names.RESERVED_ANNOTATIONS, lambda _value: [])
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(template.spec.template.spec.taints):
        path = index(_TAINTS, position)
        yield from _taint_errors(path, taint)
        if (taint.key, taint.effect) in seen:
            yield duplicate(path, {"key": taint.key, "effect": taint.effect})
        seen.add((taint.key, taint.effect))


def _map_errors(
    path: str, entries: Mapping[str, str], reserved: Collection[str], value_errors: Callable[[str], list[str]]
) -> Iterator[FieldError]:
    for key, value in sorted(entries.items()):
        if key in reserved:
            yield forbidden(f"{path}[{key}]", "the key is reserved")
        yield from (invalid(path, key, fault) for fault in qualified_name_faults(key))
        yield from (invalid(f"{path}[{key}]", value, fault) for fault in value_errors(value))


def _taint_errors(path: str, taint: Taint) -> Iterator[FieldError]:
    if taint.key in names.RESERVED_TAINTS:
        yield forbidden(child(path, "key"), "the key is reserved")
    yield from (invalid(child(path, "key"), taint.key, fault) for fault in qualified_name_faults(taint.key))
    yield from (invalid(child(path, "value"), taint.value, fault) for fault in label_value_faults(taint.value))
    if taint.effect not in EFFECTS:
        yield not_supported(child(path, "effect"), taint.effect, list(EFFECTS))
