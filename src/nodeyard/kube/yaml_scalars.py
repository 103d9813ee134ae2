"""Scalars of YAML, resolved as Kubernetes' parser does, which differs from YAML 1.1: base 60 is text, 1e3 is a number.

https://github.com/kubernetes-sigs/yaml/blob/master/goyaml.v2/resolve.go
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Final

from nodeyard.kube.json import Json

TAGS: Final = "tag:yaml.org,2002:"
_WORDS: Final[dict[str, Json]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMERIC: Final = frozenset("+-.0123456789")
"""First characters of numbers."""
_INTEGER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_FRACTION: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)?")
_OCTAL: Final = re.compile(r"^([-+]?0)([0-9])")
_LONGEST_INTEGER: Final = 70
"""Characters of the longest integer of 64 bits: in base 2, with sign and prefix."""
_TIMESTAMP: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?")


def resolve(text: str) -> Json:
    """Return the value of a scalar without quotes and tag. Timestamps are text; .inf and .nan are floats."""
    found = _WORDS.get(text, text)
    if found is not text or text[0] not in _NUMERIC:
        return found
    if text[0] == ".":
        return _float(text.replace("_", ""), text) if _FRACTION.fullmatch(text) else text
    plain = text.replace("_", "")
    if len(plain) <= _LONGEST_INTEGER and _INTEGER.fullmatch(plain):
        value = int(_OCTAL.sub(r"\1o\2", plain), 0)
        if -(2**63) <= value < (2**63 if plain[0] in "+-" else 2**64):
            return value
    return _float(plain, text) if _FLOAT.fullmatch(plain) else text


def _float(plain: str, text: str) -> float | str:
    """Return a number; the text if it is too large for one."""
    value = float(plain)
    return text if math.isinf(value) else value


def tagged(tag: str, text: str) -> Json:
    """Return the value of a scalar with an explicit tag. Raises ValueError if the tag does not fit.

    Tags that Kubernetes' parser does not know are ignored.
    """
    kind = tag.removeprefix(TAGS)
    if kind == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
        except binascii.Error:
            raise ValueError("!!binary value contains invalid base64 data") from None
    if kind not in ("null", "bool", "int", "float", "timestamp"):
        return text
    value = resolve(text)
    found = "timestamp" if value is text and _TIMESTAMP.fullmatch(text) else _KINDS[value.__class__]
    if found != kind and (kind, found) != ("float", "int"):
        raise ValueError(f"cannot decode !!{found} `{text}` as a !!{kind}")
    return value


_KINDS: Final = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}
