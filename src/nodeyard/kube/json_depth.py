"""JSON that is nested too deeply for the decoder: deep parts are cut out, so that the rest can be read. Pure.

API servers accept ten thousand levels, our decoders about one thousand. One deep object must not keep all others of
its kind from being read.
"""

from __future__ import annotations

import re
from typing import Final

# Far more than a real object has, and far less than decoders can handle.
MOST_LEVELS: Final = 500
TOO_DEEP: Final = f"it is nested more than {MOST_LEVELS} levels deep"
# Replaces a subtree that was cut out.
_CUT: Final = rb'"\u0000cut"'
# Strings match as a whole, since brackets in them are text. An unterminated one takes the rest: each byte is read once.
_TOKENS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_OPENING: Final = frozenset((b"[", b"{"))
_CLOSING: Final = frozenset((b"]", b"}"))
_ALL_BUT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_USUAL_LEVELS: Final = 64


def shallow(raw: bytes) -> bytes:
    """Return the JSON cut at this depth. It counts brackets, so its own depth does not matter."""
    parts = []
    depth = kept = 0
    for token in _TOKENS.finditer(raw):
        found = token.group()
        if found in _OPENING:
            depth += 1
            if depth == MOST_LEVELS + 1:
                parts += [raw[kept : token.start()], _CUT]
        elif found in _CLOSING:
            if depth == MOST_LEVELS + 1:
                kept = token.end()
            depth -= 1
    return b"".join([*parts, raw[kept:]])


def is_cut(raw: bytes) -> bool:
    """Return True if a subtree was cut out."""
    return _CUT in raw


def is_too_deep(raw: bytes) -> bool:
    """Return True if the JSON is nested more than MOST_LEVELS deep."""
    # Removing the innermost pairs a few times is a hundred times as fast as counting, and enough for most objects.
    brackets = raw.translate(None, _ALL_BUT_BRACKETS)
    for _ in range(_USUAL_LEVELS):
        if not brackets:
            return False
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return is_cut(shallow(raw))
