"""Templates are named by what is in them.

Cluster API replaces machines when a MachineDeployment refers to another template, and never looks whether one has
changed. So a template's spec is never edited: another spec has another name, and equal specs share one object.

Beside the name stands a second hash, of what the user asked for. When a release of ours fills in other defaults, the
spec and so the name change and the inputs do not: a running pool then keeps the template it has.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.metadata import describe
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Json, Object

_NAME_DIGITS: Final = 10
_INPUT_DIGITS: Final = 16


@dataclass(frozen=True)
class Template:
    api_version: str
    kind: str
    prefix: str
    """Whose it is: a pool's MachineDeployment or the control plane."""
    spec: Object
    inputs: str
    """A hash of what was asked for explicitly."""
    node_class: str = ""
    """The class that it was made from; empty for the provider's default."""
    pool: str = ""
    """The pool's id; empty for the control plane."""

    @cached_property
    def name(self) -> str:
        return f"{self.prefix}-{_digest({'kind': self.kind, 'spec': self.spec}, _NAME_DIGITS)}"

    def render(self, lc: LatticeCluster) -> Object:
        """The whole object. It has no owner: Cluster API makes the Cluster its owner."""
        annotations = {names.INPUTS: self.inputs}
        if self.node_class:
            annotations[names.NODE_CLASS] = self.node_class
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": describe(lc, self.name, pool=self.pool, annotations=annotations),
            "spec": self.spec,
        }


def hashed(asked: Json) -> str:
    """The hash of what was asked for."""
    return _digest(asked, _INPUT_DIGITS)


def _digest(value: Json, digits: int) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()[:digits]


_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
