"""YAML manifests, parsed as Kubernetes does: plain JSON values, with dates kept as strings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import yaml

from nodeyard.kube.goformat import number, quote
from nodeyard.kube.json import Json, Object
from nodeyard.kube.yaml_scalars import TAGS, resolve, tagged

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


_PLAIN = "plain"
_MERGE = "<<"


class _Loader(_Base):  # type: ignore[misc]
    """Parser and composer of nodes. A scalar without quotes and tag has the tag `plain`."""


_Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


class _QuotingDumper(_Dumper):  # type: ignore[misc]
    """Dumper that quotes every text which Kubernetes' parser would take for something else."""


def _represent_text(dumper: Any, text: str) -> yaml.ScalarNode:
    node: yaml.ScalarNode = dumper.represent_scalar(f"{TAGS}str", text, "'" if resolve(text) is not text else None)
    return node


_QuotingDumper.add_representer(str, _represent_text)


DEEPEST = 1000
"""Nesting limit; a much deeper tree overflows the stack of the process."""
ALIAS_ALLOWANCE = 256 * 1024
"""Characters that aliases may add to a document, in addition to twice its size."""


class ManifestError(ValueError):
    """The text is not YAML or not a manifest."""


def _key(value: Any) -> str:
    """Return a key as Kubernetes writes it in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, float):
        return number(value) if math.isfinite(value) else {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    raise ManifestError(f"unsupported map key: {value}")


def is_deeper(text: str | bytes, levels: int) -> bool:
    """Return True if the text is nested deeper; building a tree of a deep one would recurse in C without limit."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > levels:
            return True
    return False


def _refuse_depth(text: str | bytes) -> None:
    """Raise ManifestError if the text is nested too deeply. Few brackets and little indentation rule that out."""
    content = text if isinstance(text, bytes) else text.encode()
    brackets = content.count(b"[") + content.count(b"{")
    margin = max((len(line) - len(line.lstrip(b" -?:")) for line in content.splitlines()), default=0)
    if brackets + margin > DEEPEST and is_deeper(text, DEEPEST):
        raise ManifestError(f"nested more than {DEEPEST} levels deep")


def load(text: str | bytes) -> Json:
    """Parse the only document of a text; None if there is none."""
    found = list(_documents(text))
    if len(found) > 1:
        raise ManifestError("expected a single document in the stream")
    return found[0][0] if found else None


def load_first(text: str | bytes) -> tuple[Json, list[str]]:
    """Read the first document, ignoring what follows it, and return the errors of keys that it sets more than once.

    The value is None if there is no document. The errors have the texts of Go's parser.
    """
    return next(_documents(text), (None, []))


def load_all(text: str | bytes) -> Iterator[Object]:
    """Return every object of a file; empty documents are skipped and Lists are flattened."""
    for document, _ in list(_documents(text)):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise ManifestError(f"a manifest is a mapping, this document is a {type(document).__name__}")
        if document.get("kind") == "List":
            yield from document.get("items") or []
        else:
            yield document


def _documents(text: str | bytes) -> Iterator[tuple[Json, list[str]]]:
    """Read documents one by one, each with the errors of keys that it sets more than once.

    Plain documents are built from the parser's events. The first one with anchors, tags or merged maps, and all after
    it, are built from nodes, which takes three times as long.
    """
    count = 0
    try:
        _refuse_depth(text)
        try:
            for document in _plain_documents(text):
                yield document
                count += 1
            return
        except (_NotPlainError, yaml.YAMLError, ValueError):
            pass
        yield from islice(_composed_documents(text), count, None)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(str(error)) from error


def _composed_documents(text: str | bytes) -> Iterator[tuple[Json, list[str]]]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield _construct(node, 2 * len(text) + ALIAS_ALLOWANCE)
    finally:
        loader.dispose()


class _NotPlainError(Exception):
    """The document has anchors, tags, merged maps, or keys that are not text."""


def _plain_documents(text: str | bytes) -> Iterator[tuple[Json, list[str]]]:
    loader = _Loader(text)
    try:
        loader.get_event()  # the start of the stream
        while not loader.check_event(yaml.StreamEndEvent):
            if loader.get_event().tags:
                raise _NotPlainError
            document = _Builder(loader).build()
            loader.get_event()  # the end of the document
            yield document
    finally:
        loader.dispose()


_UNSET: Any = object()


class _Builder:
    """Builds one document from its events, without recursion, because it may be deep."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._plain: dict[str, Json] = {}
        self._here: Json = None
        """The collection that is being filled; None outside of all."""
        self._key: Json = _UNSET
        self._doubled: list[str] = []
        self._above: list[tuple[Json, Json, list[str]]] = []
        self._root: Json = _UNSET
        self._repeated: list[str] = []

    def build(self) -> tuple[Json, list[str]]:
        """Build one value from its events; return it and the errors of repeated keys."""
        actions = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
        }
        next_event = self._loader.get_event
        while self._root is _UNSET:
            event = next_event()
            action = actions.get(event.__class__)
            if action is None:
                raise _NotPlainError
            action(event)
        return self._root, self._repeated

    def _scalar(self, event: Any) -> None:
        if event.anchor is not None or event.tag is not None:
            raise _NotPlainError
        value: Json = event.value
        if event.implicit[0]:
            found = self._plain.get(value, _UNSET)
            if found is _UNSET:
                found = self._plain[value] = _resolve_plain(value)
            value = found
        here = self._here
        if here.__class__ is list:
            here.append(value)
        elif here is None:
            self._root = value
        elif self._key is not _UNSET:
            self._note_repeated(event)
            here[self._key] = value
            self._key = _UNSET
        elif value.__class__ is str:
            self._key = value
        else:
            raise _NotPlainError

    def _open(self, event: Any) -> None:
        if event.anchor is not None or event.tag is not None:
            raise _NotPlainError
        if self._here.__class__ is dict:
            if self._key is _UNSET:
                raise _NotPlainError
            self._note_repeated(event)
        self._above.append((self._here, self._key, self._doubled))
        self._here = {} if event.__class__ is yaml.MappingStartEvent else []
        self._key, self._doubled = _UNSET, []

    def _close(self, event: Any) -> None:
        value = self._here
        self._repeated += self._doubled
        self._here, key, self._doubled = self._above.pop()
        self._key = _UNSET
        if self._here is None:
            self._root = value
        elif self._here.__class__ is list:
            self._here.append(value)
        else:
            self._here[key] = value

    def _note_repeated(self, event: Any) -> None:
        if self._key in self._here:
            self._doubled.append(_already_set(self._key, event))


def _resolve_plain(text: str) -> Json:
    value = resolve(text)
    if text == _MERGE or (value.__class__ is float and not math.isfinite(value)):
        raise _NotPlainError
    return value


def _already_set(key: str, value: Any) -> str:
    """Return the error of a repeated key as Go's parser words it; `value` is the event or node of its value."""
    return f"line {value.start_mark.line + 1}: key {quote(key)} already set in map"


def _construct(root: yaml.Node, most: int) -> tuple[Json, list[str]]:
    """Return the value of a node and the errors of repeated keys.

    Raises ManifestError if aliases make the document larger than `most`, or endless. A node that aliases repeat is one
    object: its value is shared, and its size is added at each place.
    """
    sizes: dict[int, int] = {}
    values: dict[int, Json] = {}
    entered: set[int] = set()
    repeated: list[str] = []
    stack: list[tuple[yaml.Node, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if isinstance(node, yaml.ScalarNode):
            sizes[id(node)] = 1 + len(node.value)
            values[id(node)] = resolve(node.value) if node.tag == _PLAIN else tagged(node.tag, node.value)
            continue
        mapping = node if isinstance(node, yaml.MappingNode) else None
        parts = node.value if mapping is None else [part for pair in mapping.value for part in pair]
        if is_done:
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts)
            if sizes[id(node)] > most:
                raise ManifestError("document contains excessive aliasing")
            if mapping is None:
                values[id(node)] = [_finite(values[id(part)]) for part in parts]
            else:
                repeated += _repeated_keys(mapping)
                values[id(node)] = _mapping(mapping, values)
        elif id(node) not in sizes:
            if id(node) in entered:
                raise ManifestError("the value of an anchor contains itself")
            entered.add(id(node))
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(parts))
    return _finite(values[id(root)]), repeated


def _mapping(node: yaml.MappingNode, values: dict[int, Json]) -> Object:
    """Return a mapping. As in Kubernetes' parser the last key wins, merged or not; of several merged maps the first."""
    found: Object = {}
    for key, value in node.value:
        built = values[id(value)]
        if key.tag == _PLAIN and key.value == _MERGE:
            sources = built if isinstance(value, yaml.SequenceNode) else [built]
            if not all(isinstance(source, dict) for source in sources):
                raise ManifestError("map merge requires map or sequence of maps as the value")
            for source in reversed(sources):
                found.update(source)
        elif isinstance(key, yaml.ScalarNode):
            found[_key(values[id(key)])] = _finite(built)
        else:
            raise ManifestError("invalid map key: a collection")
    return found


def _finite(value: Json) -> Json:
    if value.__class__ is float and not math.isfinite(value):
        raise ManifestError(f"unsupported value: {_key(value)}")
    return value


def _repeated_keys(node: yaml.MappingNode) -> Iterator[str]:
    keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != _MERGE]
    if len(set(keys)) == len(keys):
        return
    seen = set()
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value != _MERGE:
            if key.value in seen:
                yield _already_set(key.value, value)
            seen.add(key.value)


def dump(value: Json) -> str:
    return str(yaml.dump(value, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=120))


def dump_all(values: list[Json]) -> str:
    return str(
        yaml.dump_all(
            values, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=120, explicit_start=True
        )
    )
