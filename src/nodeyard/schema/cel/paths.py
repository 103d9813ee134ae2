"""`fieldPath` of a rule: where its failure is reported, below the place the rule stands at.

A path is a chain of `.field` and `['key']`, each of which the schema must know.
"""

from __future__ import annotations

import re

from nodeyard.kube.fields import child, key
from nodeyard.schema.model import Schema

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def resolve(path: str, schema: Schema) -> str | None:
    """The path as errors show it, None if it is not a path or leads nowhere."""
    shown, position = "", 0
    node: Schema | None = schema
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or node is None:
            return None
        name = step[1] if step[1] is not None else _unescaped(step[2])
        if name is None:
            return None
        if node.properties:
            node, shown = node.properties.get(name), child(shown, name)
        else:
            node, shown = node.additional, key(shown, name)
        position = step.end()
    return shown if node is not None else None


def _unescaped(text: str) -> str | None:
    if any(letter not in _ESCAPED for letter in _ESCAPE.findall(text)):
        return None
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], text)
