"""The words of validation: a rule, a bounded text or number, labels, taints and what their keys look like."""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX
from nodeyard.kube.taints import EFFECTS

_MOST_LABELS: Final = 64
_MOST_TAINTS: Final = 24
KEY_MAX: Final = SUBDOMAIN_MAX + 1 + LABEL_VALUE_MAX
CONDITIONS: Final[Object] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}([.]{LABEL})*"
_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY = f"^({SUBDOMAIN}/)?{_NAME}$"
VALUE = f"^({_NAME})?$"

KEY_MESSAGE = "a key is a name of at most 63 letters, digits, '-', '_' and '.', after an optional DNS prefix and slash"
VALUE_MESSAGE = "a value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"


def rule(cel: str, message: str, expression: str = "") -> Object:
    """A rule; where an expression makes its message, the plain one stands in when that fails."""
    said: Object = {"rule": cel, "message": message}
    return {**said, "messageExpression": expression} if expression else said


def checks(*rules: Object, **schema: object) -> Object:
    return {**schema, "x-kubernetes-validations": list(rules)}


def text(most: int = SUBDOMAIN_MAX) -> Object:
    return {"maxLength": most}


def count(least: int = 0, **more: int) -> Object:
    return {"minimum": least, "format": "int32", **more}


def enum(*values: str, default: str) -> Object:
    return {"enum": [str(value) for value in values], "default": str(default)}


def object_name(what: str) -> Object:
    return checks(
        rule(
            f"self == '' || self.matches('^{SUBDOMAIN}$')",
            f"the name of a {what} is lower case letters, digits, '-' and '.'",
        ),
        maxLength=SUBDOMAIN_MAX,
    )


# maps and lists that become labels, selectors and taints


def label_map(path: str) -> dict[str, Object]:
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
        f"{path}.*": text(LABEL_VALUE_MAX),
    }


def taint_list(path: str) -> dict[str, Object]:
    return {
        path: {
            "maxItems": _MOST_TAINTS,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key", "effect"],
        },
        f"{path}[]": {"required": ["key", "effect"]},
        f"{path}[].key": checks(rule(f"self.matches('{KEY}')", KEY_MESSAGE), maxLength=KEY_MAX),
        f"{path}[].value": checks(rule(f"self.matches('{VALUE}')", VALUE_MESSAGE), maxLength=LABEL_VALUE_MAX),
        f"{path}[].effect": {"enum": list(EFFECTS)},
    }
