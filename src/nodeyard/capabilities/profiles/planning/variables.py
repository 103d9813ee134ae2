"""Merge `ansibleVars` of a node over those of its role, by top-level key, without a deep merge.

Values are copied as YAML nodes and not interpreted, so Ansible tags (`!vault`) and numbers such as `1.10` survive.
Errors name the position and never quote the text, which may hold passwords.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import yaml

from nodeyard.capabilities.profiles.types import Source
from nodeyard.kube.manifests import is_deeper

_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_REMEMBERED: Final = 256
"""Cached texts: the text of a role is parsed for each of its nodes."""
_DEEPEST: Final = 100
"""Maximum nesting. The composer of libyaml is recursive, and some ten thousand levels crash the process."""


class VariablesError(ValueError):
    """Text is not YAML, or not a mapping."""


@dataclass(frozen=True)
class Variables:
    text: str = ""
    origins: Mapping[str, Source] | None = None
    """Layer of each key, in the order of the text."""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(sorted(self.origins or ()))


def check(text: str) -> None:
    """Raise VariablesError if the text cannot be merged."""
    _entries(text)


def merge(of_node: str, of_role: str) -> Variables:
    """Merge both texts; keys of the node win. A single text is kept byte for byte."""
    own, inherited = _entries(of_node), _entries(of_role)
    origins = {**dict.fromkeys(inherited, Source.ROLE), **dict.fromkeys(own, Source.NODE)}
    if not own or not inherited:
        return Variables(of_node if own else of_role, origins)
    pairs = list({**inherited, **own}.values())
    text = yaml.serialize(yaml.MappingNode("tag:yaml.org,2002:map", pairs), Dumper=_Dumper, allow_unicode=True)
    return Variables(text, origins)


@lru_cache(maxsize=_REMEMBERED)
def _entries(text: str) -> Mapping[str, tuple[yaml.Node, yaml.Node]]:
    """Return key and value nodes by top-level key; the last of a duplicate key wins, as in most YAML parsers."""
    try:
        if is_deeper(text, _DEEPEST):
            raise VariablesError(f"is nested more than {_DEEPEST} levels deep")
        document = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise VariablesError(f"is not YAML{where}") from None
    except yaml.YAMLError:
        raise VariablesError("is not YAML") from None
    if document is None or document.tag == "tag:yaml.org,2002:null":
        return {}
    if not isinstance(document, yaml.MappingNode):
        raise VariablesError("is not a mapping of variables to values")
    if any(not isinstance(key, yaml.ScalarNode) for key, _value in document.value):
        raise VariablesError("has a key that is not a scalar")
    return {key.value: (key, value) for key, value in document.value}
