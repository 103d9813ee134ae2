"""What is wrong with a CRD's openAPIV3Schema: what the server refuses when the definition is created.

In its order: what may stand at the root; whether the schema is structural and, if so, whether its defaults are sound;
then every node by itself. Whether a rule in CEL compiles is asked of the `rule_faults` given, node by node, where
nothing else is wrong.
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
    """`path` is where the schema stands; `has_status`: status is a subresource, which limits what the root may say."""
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
    """With status split off, only what would not be lost by that may be said of the whole."""
    for name in internal_names(openapi):
        if name == "Type":
            if openapi["type"] != "object":
                words = f'only "object" is allowed as the type {_AT_ROOT}'
                return [invalid(child(path, "type"), openapi["type"], words)]
        elif name not in AT_ROOT_WITH_STATUS:
            words = f"only [{' '.join(AT_ROOT_WITH_STATUS)}] fields are allowed {_AT_ROOT}"
            return [invalid(path, as_internal(openapi), words)]
    return []
