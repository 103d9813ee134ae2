"""Nodes that look alike change alike: the change is worked out once and cast for each of them.

Spares come in batches and are, to a template, mostly the same node under other names. What a change depends on is the
values of the keys that the template touches, and the taints; nodes that agree in these share one patch body and one
diff. That is what makes a plan of a hundred thousand claims cheap, in time and in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.edits import Change, Edit
from nodeyard.capabilities.spares.planning.templates import Wanted
from nodeyard.kube.objects import Node

_LABELS = (names.SPARE_LABEL, names.OUT_LABEL, names.OUT_ROLE_LABEL)
_ANNOTATIONS = (names.RECORD, names.LABELLED)


class Moulds:
    """The changes that one step makes for one template, by what a node looks like."""

    def __init__(self, wanted: Wanted, make: Callable[[Edit], None]) -> None:
        self._labels = (*wanted.labels, *_LABELS)
        self._annotations = (*wanted.annotations, *_ANNOTATIONS)
        self._make = make
        self._moulds: dict[Hashable, Change] = {}

    def cast(self, node: Node) -> Change:
        label, annotation = node.metadata.labels.get, node.metadata.annotations.get
        looks = (
            tuple([label(key) for key in self._labels]),
            tuple([annotation(key) for key in self._annotations]),
            node.spec.taints,
        )
        change = self._moulds.get(looks)
        if change is None:
            edit = Edit(node)
            self._make(edit)
            change = self._moulds[looks] = edit.change()
        return change
