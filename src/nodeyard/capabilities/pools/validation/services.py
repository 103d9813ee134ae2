"""Validation of LatticeService: nodeSelector and tolerations, as Kubernetes accepts them."""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX
from nodeyard.kube.taints import EFFECTS
from nodeyard.schema.rules import (
    CONDITIONS,
    KEY,
    KEY_MAX,
    KEY_MESSAGE,
    VALUE,
    VALUE_MESSAGE,
    checks,
    label_map,
    rule,
)

SERVICE: Final[dict[str, Object]] = {
    "": {"required": ["spec"]},
    # Services of Lattice have many more fields; unknown fields are preserved.
    "spec": {"x-kubernetes-preserve-unknown-fields": True},
    **label_map("spec.placement.nodeSelector"),
    "spec.placement.tolerations": {"maxItems": 64},
    "spec.placement.tolerations[]": checks(
        rule(
            "has(self.key) && self.key != '' || has(self.operator) && self.operator == 'Exists'",
            "operator must be Exists if key is empty",
        ),
        rule(
            "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
            "value must be empty if operator is Exists",
        ),
    ),
    "spec.placement.tolerations[].key": checks(
        rule(f"self == '' || self.matches('{KEY}')", KEY_MESSAGE), maxLength=KEY_MAX
    ),
    "spec.placement.tolerations[].operator": {"enum": ["", "Equal", "Exists"]},
    "spec.placement.tolerations[].value": checks(
        rule(f"self.matches('{VALUE}')", VALUE_MESSAGE), maxLength=LABEL_VALUE_MAX
    ),
    "spec.placement.tolerations[].effect": {"enum": ["", *EFFECTS]},
    "status.conditions": CONDITIONS,
}
