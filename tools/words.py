"""Writes the words that a support bundle keeps in texts. A test fails if they have drifted.

python -m tools.words

The words are those of what may stand in a bundle: names in the CRDs and the built-in types, the texts and reasons of
Nodeyard, and `kubernetes_messages.txt` for what Kubernetes, Cluster API and Flux say.
Descriptions, help texts and docstrings are no source: ordinary words that only they have may be passwords.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.bundle.redaction import WORD

ROOT: Final = Path(__file__).parents[1]
WORDS: Final = ROOT / "src" / "nodeyard" / "bundle" / "words.txt"
MESSAGES: Final = Path(__file__).with_name("kubernetes_messages.txt")
_TEXTS: Final = (
    "src/nodeyard/capabilities/**/*.py",
    "src/nodeyard/client/errors.py",
    *(f"src/nodeyard/{each}/*.py" for each in ("kube", "plan", "runtime/remote", "schema")),
)
"""Modules whose texts reach conditions, events and plans, or which compare values of fields."""
_TYPES: Final = ROOT / "testbed" / "src" / "nodeyard" / "apiserver" / "kinds" / "types.json"
PASSWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """
    access admin batman changeme charlie computer dragon example foo football guest hello hunter letmein login love
    magic master monkey orange pass pretty princess qwerty shadow simple summer sun sunshine superman test tiger welcome
    windows winter
    """,
    )
)
"""Ordinary words that are common passwords, or of which no message needs the plain text."""
_KEPT: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(['._-][A-Za-z0-9]+)*")


def words() -> list[str]:
    """Return the words in order."""
    types = _strings(json.loads(_TYPES.read_text()))
    texts = [*_texts_of_modules(), *_names_of_crds(), *types, MESSAGES.read_text("ascii")]
    found = {word.rstrip(".") for text in texts for word in WORD.findall(text)}
    return sorted(each for each in found if _KEPT.fullmatch(each) and each.lower() not in PASSWORDS)


def _texts_of_modules() -> Iterator[str]:
    for path in sorted({path for pattern in _TEXTS for path in ROOT.glob(pattern)}):
        tree = ast.parse(path.read_text())
        documentation = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
                yield node.value


def _names_of_crds() -> Iterator[str]:
    for definition in (each for every in CAPABILITIES for each in every.definitions()):
        spec = definition["spec"]
        yield spec["group"]
        yield from _strings(spec["names"])
        for version in spec["versions"]:
            yield version["name"]
            yield from _names(version["schema"]["openAPIV3Schema"])


def _names(schema: Any) -> Iterator[str]:
    """Yield the fields and the values of enums below a schema."""
    if not isinstance(schema, dict):
        return
    for name, below in schema.get("properties", {}).items():
        yield name
        yield from _names(below)
    yield from (each for each in (*schema.get("enum", ()), schema.get("default")) if isinstance(each, str))
    for below in (schema.get("items"), schema.get("additionalProperties")):
        yield from _names(below)


def _strings(value: Any) -> Iterator[str]:
    """Yield the keys and texts of a JSON value."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, str):
        yield value


def main() -> None:
    WORDS.write_text("\n".join(words()) + "\n")


if __name__ == "__main__":
    main()
