"""Templates, named by a hash of their content.

Cluster API replaces machines when a MachineDeployment references another template, and ignores edits of a template. So
a template is never edited: a new spec has a new name, and equal specs share one object.

A second hash covers the user's inputs. If a release of Nodeyard changes defaults, the spec and the name change and the
inputs do not: a running pool then keeps its template.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.generation.metadata import object_metadata
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Json, Object

_NAME_DIGITS: Final = 10
_INPUT_DIGITS: Final = 16


@dataclass(frozen=True)
class Template:
    api_version: str
    kind: str
    prefix: str
    """Name prefix: the MachineDeployment or the control plane."""
    spec: Object
    inputs: str
    """The hash of the user's inputs."""
    node_class: str = ""
    """The LatticeNodeClass; empty for the provider's default."""
    pool: str = ""
    """The pool's id; empty for the control plane."""

    @cached_property
    def name(self) -> str:
        return f"{self.prefix}-{_digest({'kind': self.kind, 'spec': self.spec}, _NAME_DIGITS)}"

    def render(self, lc: LatticeCluster) -> Object:
        """Return the object. It has no ownerReferences: Cluster API sets the Cluster as owner."""
        annotations = {names.INPUTS: self.inputs}
        if self.node_class:
            annotations[names.NODE_CLASS] = self.node_class
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": object_metadata(lc, self.name, pool=self.pool, annotations=annotations),
            "spec": self.spec,
        }


def hash_inputs(inputs: Json) -> str:
    """Return the hash of the user's inputs."""
    return _digest(inputs, _INPUT_DIGITS)


def _digest(value: Json, digits: int) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()[:digits]


_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
