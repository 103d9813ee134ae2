"""Schema fragments of pools: bounded strings and numbers, enums, object names and taints."""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX
from nodeyard.kube.taints import EFFECTS
from nodeyard.schema.rules import KEY, KEY_MAX, KEY_MESSAGE, SUBDOMAIN, VALUE, VALUE_MESSAGE, checks, rule

_TAINTS_MAX: Final = 24


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


def taint_list(path: str) -> dict[str, Object]:
    return {
        path: {
            "maxItems": _TAINTS_MAX,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key", "effect"],
        },
        f"{path}[]": {"required": ["key", "effect"]},
        f"{path}[].key": checks(rule(f"self.matches('{KEY}')", KEY_MESSAGE), maxLength=KEY_MAX),
        f"{path}[].value": checks(rule(f"self.matches('{VALUE}')", VALUE_MESSAGE), maxLength=LABEL_VALUE_MAX),
        f"{path}[].effect": {"enum": list(EFFECTS)},
    }
