"""The classes before, which pods of an application may still have: as the label of its release tells. Pure.

    dc2_dc1    went from dc1 to dc2, and on from there before it was ready: the latest comes first
    (empty)    had no class: its pods may be anywhere

Names of classes have no underscore. A label has room for some of them, and the oldest go first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.kube.names import LABEL_VALUE_MAX

NO_CLASS: Final = ""
_BETWEEN: Final = "_"


def previous_classes(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Of a release by its labels; none where nothing is changing."""
    value = labels.get(names.PREVIOUS_CLASS)
    return () if value is None else tuple(value.split(_BETWEEN))


def previous_label(previous: Sequence[str]) -> str:
    """Where there are some."""
    if NO_CLASS in previous:
        return NO_CLASS
    kept = list(previous)
    while len(_BETWEEN.join(kept)) > LABEL_VALUE_MAX:
        kept.pop()
    return _BETWEEN.join(kept)


def shown(previous: Sequence[str]) -> str:
    """For people."""
    return ", ".join(previous)
