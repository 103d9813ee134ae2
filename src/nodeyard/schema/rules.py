"""The words in which a definition says what the server checks: a rule, what it stands on, and what names look like.

overlay = {"spec.role": checks(rule(f"self.matches('^{SUBDOMAIN}$')", "the name of a role is ..."), maxLength=253)}
"""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = f"{LABEL}([.]{LABEL})*"
NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""What follows the prefix in the key of a label or annotation; also a label's value, where there is one."""
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
"""A list of conditions, one of each type."""


def rule(cel: str, message: str, expression: str = "") -> Object:
    """A rule; where an expression makes its message, the plain one stands in when that fails."""
    said: Object = {"rule": cel, "message": message}
    return {**said, "messageExpression": expression} if expression else said


def checks(*rules: Object, **schema: object) -> Object:
    """A schema with rules."""
    return {**schema, "x-kubernetes-validations": list(rules)}


def label_map(path: str) -> dict[str, Object]:
    """A map that becomes labels or selects by them."""
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
