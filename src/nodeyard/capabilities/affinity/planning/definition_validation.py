"""Validate an ApplicationDefinition: names that the API server accepts, and a chart reference that Flux can resolve.

The webhook and the plan share these checks. `schemas` checks the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.kube.names import dns_1035_faults, label_value_faults

RELEASE_NAME_MAX: Final = 53
"""Helm's limit."""
CHART_KINDS: Final = ("OCIRepository", "HelmChart", "ExternalArtifact")
_KIND_MAX: Final = 59
"""The list kind is four letters longer, at most 63 characters."""


def declaration_faults(definition: ApplicationDefinition) -> list[str]:
    """Return the faults, each with its field and value."""
    return [*_name_faults(definition), *_release_faults(definition)]


def _name_faults(definition: ApplicationDefinition) -> Iterator[str]:
    if label_value_faults(definition.name):
        yield f"metadata.name {definition.name!r} is too long: it becomes a label value, of at most 63 characters"
    given = definition.spec.application
    for field, value in (("plural", given.plural), ("singular", given.singular)):
        if faults := dns_1035_faults(value):
            yield f"spec.application.{field} {value!r}: {faults[0]}"
    if len(given.kind) > _KIND_MAX:
        yield f"spec.application.kind {given.kind!r}: must be no more than {_KIND_MAX} characters"
    elif faults := dns_1035_faults(given.kind.lower()):
        yield f"spec.application.kind {given.kind!r}: may have mixed case, but otherwise {faults[0]}"
    if names.TENANT_KIND.lower() in (given.kind.lower(), given.singular) or given.plural == names.TENANT_PLURAL:
        yield f"spec.application.kind {given.kind!r}: {names.TENANT_KIND} is built in and cannot be declared"


def _release_faults(definition: ApplicationDefinition) -> Iterator[str]:
    release = definition.spec.release
    if release.prefix and dns_1035_faults(f"{release.prefix}x"):
        yield f"spec.release.prefix {release.prefix!r}: must be lower case letters, digits and '-', a letter first"
    elif len(release.prefix) >= RELEASE_NAME_MAX:
        yield f"spec.release.prefix {release.prefix!r}: leaves no room for a name within {RELEASE_NAME_MAX} characters"
    chart = release.chart_ref
    if chart is None or not chart.name:
        yield "spec.release.chartRef: set kind, name and namespace of the chart to release"
    elif chart.kind not in CHART_KINDS:
        yield f"spec.release.chartRef.kind {chart.kind!r}: must be one of {', '.join(CHART_KINDS)}"
