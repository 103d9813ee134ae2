"""Validates a leaf model that the API server accepted. Errors name the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nodeyard.capabilities.clustertree.types import LeafModel
from nodeyard.kube.fields import child, index, key
from nodeyard.kube.names import label_value_faults, qualified_name_faults
from nodeyard.kube.objects import Taint
from nodeyard.kube.selectors import object_errors
from nodeyard.kube.taints import EFFECTS


class _Expression(msgspec.Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Selector(msgspec.Struct):
    """The shape of a label selector; another CRD of this kind may accept anything."""

    matchLabels: dict[str, str] | None = None  # noqa: N815
    matchExpressions: list[_Expression] | None = None  # noqa: N815


def model_fault(model: LeafModel, path: str) -> str:
    """Return the first error; empty if the model is valid."""
    return next(_faults(model, path), "")


def _faults(model: LeafModel, path: str) -> Iterator[str]:
    selector = model.node_selector.label_selector
    if selector is not None:
        yield from _selector_faults(selector, child(path, "nodeSelector.labelSelector"))
    yield from _label_faults(model.labels, child(path, "labels"))
    for position, taint in enumerate(model.taints):
        yield from _taint_faults(taint, index(child(path, "taints"), position))


def _selector_faults(selector: dict[str, Any], path: str) -> Iterator[str]:
    try:
        msgspec.convert(selector, _Selector)
    except msgspec.ValidationError as error:
        yield f"{path}: {error}"
        return
    for fault in object_errors(selector, path):
        yield str(fault)


def _label_faults(labels: Mapping[str, str], path: str) -> Iterator[str]:
    for name, value in labels.items():
        for fault in (*qualified_name_faults(name), *label_value_faults(value)):
            yield f"{key(path, name)}: {fault}"


def _taint_faults(taint: Taint, path: str) -> Iterator[str]:
    for fault in qualified_name_faults(taint.key):
        yield f"{path}.key {taint.key!r}: {fault}"
    for fault in label_value_faults(taint.value):
        yield f"{path}.value {taint.value!r}: {fault}"
    if taint.effect not in EFFECTS:
        yield f"{path}.effect {taint.effect!r} is not one of {', '.join(EFFECTS)}"
