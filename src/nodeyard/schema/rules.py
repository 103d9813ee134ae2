"""Builds CEL rules and schema parts for the overlay of a CRD.

overlay = {"spec.role": checks(rule(f"self.matches('^{SUBDOMAIN}$')", "the name of a role is ..."), maxLength=253)}
"""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = f"{LABEL}([.]{LABEL})*"
NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""The name part of a label or annotation key; also a non-empty label value."""
KEY: Final = f"^({SUBDOMAIN}/)?{NAME}$"
VALUE: Final = f"^({NAME})?$"
KEY_MAX: Final = SUBDOMAIN_MAX + 1 + LABEL_VALUE_MAX
KEY_MESSAGE: Final = (
    "a key is a name of at most 63 letters, digits, '-', '_' and '.', after an optional DNS prefix and slash"
)
VALUE_MESSAGE: Final = (
    "a value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
)
_MOST_LABELS: Final = 64

CONDITIONS: Final[Object] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
"""The list type of conditions: a map by type."""


def rule(cel: str, message: str, expression: str = "") -> Object:
    """Build a rule. `message` is the fallback if `expression`, the messageExpression, fails."""
    built: Object = {"rule": cel, "message": message}
    return {**built, "messageExpression": expression} if expression else built


def checks(*rules: Object, **schema: object) -> Object:
    """Build a schema part with rules."""
    return {**schema, "x-kubernetes-validations": list(rules)}


def label_map(path: str) -> dict[str, Object]:
    """Build the overlay of a map of labels or of a label selector."""
    return {
        path: checks(
            rule(
                f"self.all(k, size(k) <= {KEY_MAX} && k.matches('{KEY}'))",
                KEY_MESSAGE,
                f"\"'\" + self.filter(k, size(k) > {KEY_MAX} || !k.matches('{KEY}'))[0] + \"' is no label key: "
                f'{KEY_MESSAGE}"',
            ),
            rule(f"self.all(k, self[k].matches('{VALUE}'))", VALUE_MESSAGE),
            maxProperties=_MOST_LABELS,
        ),
        f"{path}.*": {"maxLength": LABEL_VALUE_MAX},
    }
