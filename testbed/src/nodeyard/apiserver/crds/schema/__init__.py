"""Validation of a CRD's openAPIV3Schema.

In kube-apiserver's order: the root; whether the schema is structural and, if so, its defaults; then each node. CEL
rules are compiled by the given `rule_faults`, node by node, if nothing else is wrong.
"""

from __future__ import annotations

from nodeyard.apiserver.crds.schema.conversion import conversion_fault
from nodeyard.apiserver.crds.schema.internal import AT_ROOT_WITH_STATUS, as_internal, internal_names
from nodeyard.apiserver.crds.schema.nodes import Place, RuleFaults, node_faults
from nodeyard.apiserver.crds.schema.structure import structure_faults
from nodeyard.kube.fields import FieldError, child, forbidden, invalid
from nodeyard.kube.json import Object
from nodeyard.schema.default_values import default_faults

_AT_ROOT = "at the root of the schema if the status subresource is enabled"

__all__ = ["RuleFaults", "definition_faults"]


def definition_faults(
    openapi: Object, path: str, *, has_status: bool = False, rule_faults: RuleFaults | None = None
) -> list[FieldError]:
    """Validate the schema at this path; a status subresource limits what the root may contain."""
    faults = _root_faults(openapi, path) if has_status else []
    if openapi.get("nullable"):
        faults.append(forbidden(child(path, "nullable"), "nullable cannot be true at the root"))
    unconvertible = conversion_fault(openapi)
    if unconvertible is None:
        deeper = structure_faults(openapi, path) or default_faults(openapi, path)
        faults += deeper
        if deeper:
            rule_faults = None
    found, found_in_rules = node_faults(openapi, Place(path, is_root=True), rule_faults if not unconvertible else None)
    faults += found + found_in_rules
    if unconvertible is not None and not faults:
        faults.append(invalid(path, "", unconvertible))
    return faults


def _root_faults(openapi: Object, path: str) -> list[FieldError]:
    """Fields of the root that would not survive the split into status and the rest."""
    for name in internal_names(openapi):
        if name == "Type":
            if openapi["type"] != "object":
                words = f'only "object" is allowed as the type {_AT_ROOT}'
                return [invalid(child(path, "type"), openapi["type"], words)]
        elif name not in AT_ROOT_WITH_STATUS:
            words = f"only [{' '.join(AT_ROOT_WITH_STATUS)}] fields are allowed {_AT_ROOT}"
            return [invalid(path, as_internal(openapi), words)]
    return []
