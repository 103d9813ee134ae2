"""Escaping of property names to CEL identifiers.

A property whose name is no identifier has an escaped one: `app.kubernetes.io/name` is
`app__dot__kubernetes__dot__io__slash__name`, `namespace` is `__namespace__`. Other names are not accessible.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Reserved words: escaped as names of fields, refused as identifiers.
RESERVED = frozenset(
    re.findall(
        r"\w+",
        "as break const continue else for function if import let loop package namespace return var void while",
    )
)
_KEYWORDS = frozenset(("true", "false", "null", "in"))
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ESCAPABLE = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)
_SPECIAL = re.compile(r"__|[-./]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """Return the identifier of a property, or None if it has none."""
    if name in RESERVED or name in _KEYWORDS:
        return f"__{name}__"
    if "__" not in name and _PLAIN.fullmatch(name):
        return name
    if not _ESCAPABLE.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name)
