"""`ansibleVars` of a node laid over those of its role: top-level keys one by one, the node's first, nothing deeper.

The texts are merged as they are written: values are carried over and not interpreted, so that tags that only Ansible
knows (`!vault`) and numbers such as `1.10` come out as they went in. Errors name the place and never quote the text,
which may hold passwords.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import yaml

from nodeyard.capabilities.profiles.types import Source

_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_REMEMBERED: Final = 256
"""Texts: a role's is read for each of its nodes."""
_DEEPEST: Final = 100
"""Levels. libyaml's composer calls itself for each, and some ten thousand end the process."""


class VariablesError(ValueError):
    """Not YAML, or not a mapping."""


@dataclass(frozen=True)
class Variables:
    text: str = ""
    origins: Mapping[str, Source] | None = None
    """By key, in the order of the text."""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(sorted(self.origins or ()))


def check(text: str) -> None:
    """Raises VariablesError where the text cannot be laid over another."""
    _entries(text)


def merged(of_node: str, of_role: str) -> Variables:
    """Both, the node's keys over the role's. A text that is alone stays as it is, byte for byte."""
    own, inherited = _entries(of_node), _entries(of_role)
    origins = {**dict.fromkeys(inherited, Source.ROLE), **dict.fromkeys(own, Source.NODE)}
    if not own or not inherited:
        return Variables(of_node if own else of_role, origins)
    pairs = list({**inherited, **own}.values())
    text = yaml.serialize(yaml.MappingNode("tag:yaml.org,2002:map", pairs), Dumper=_Dumper, allow_unicode=True)
    return Variables(text, origins)


@lru_cache(maxsize=_REMEMBERED)
def _entries(text: str) -> Mapping[str, tuple[yaml.Node, yaml.Node]]:
    """The key and the value of each top-level key; of one that is there twice the last, as YAML is mostly read."""
    try:
        _check_depth(text)
        document = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise VariablesError(f"is not YAML{where}") from None
    except yaml.YAMLError:
        raise VariablesError("is not YAML") from None
    if document is None or _is_null(document):
        return {}
    if not isinstance(document, yaml.MappingNode):
        raise VariablesError("is not a mapping of variables to values")
    if any(not isinstance(key, yaml.ScalarNode) for key, _value in document.value):
        raise VariablesError("has a key that is not a name")
    return {key.value: (key, value) for key, value in document.value}


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise VariablesError(f"is nested more than {_DEEPEST} levels deep")


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")
