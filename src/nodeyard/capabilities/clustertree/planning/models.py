"""The leaf models of a Cluster, and the name of the node of each.

    labelSelector given    a party: the leaf nodes that it selects, as kosmos-<leafNodeName>-<index>
    nodeName given         one leaf node, under its own name
    neither                the rest of the cluster, as kosmos-<cluster>

The index is the model's position in the list. In Kosmos a party changes its node when an earlier item is removed. Here
a party keeps its node: the node records its model, and a new party takes the first free index from its position on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.ownership import mirrors_of
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster, LeafModel
from nodeyard.kube.fields import child, index, key
from nodeyard.kube.names import label_value_faults, qualified_name_faults, subdomain_faults
from nodeyard.kube.objects import Slice, Taint
from nodeyard.kube.selectors import LabelSelector, from_object, object_errors
from nodeyard.kube.taints import EFFECTS


class Mode(StrEnum):
    """Values of the annotation `leafNodeMode`."""

    WHOLE = "one2cluster"
    NODE = "one2node"
    PARTY = "one2party"


_EVERYTHING = LabelSelector()
_REMEMBERED: Final = 1000


@dataclass(frozen=True)
class Model:
    mode: Mode
    position: int
    spec: LeafModel
    selector: LabelSelector = _EVERYTHING
    """Set for a party."""
    fault: str = ""
    """Error that keeps it from having a node."""

    @property
    def leaf_node(self) -> str:
        """Name of the single leaf node; empty for other modes."""
        return self.spec.node_selector.node_name if self.mode is Mode.NODE else ""

    @property
    def identity(self) -> str:
        """Value of the node's annotation `nodeyard.dev/leaf-model`."""
        match self.mode:
            case Mode.WHOLE:
                return "cluster"
            case Mode.NODE:
                return f"node/{self.leaf_node}"
            case Mode.PARTY:
                return f"{self._family}{self.selector}"

    @property
    def title(self) -> str:
        """Name in messages: the field."""
        return f"leafModels[{self.position}]"

    @property
    def _family(self) -> str:
        return f"party/{self.spec.leaf_node_name}/"

    def is_kin(self, identity: str) -> bool:
        """Return True if that was a party of the same name, whatever it selected."""
        return self.mode is Mode.PARTY and identity.startswith(self._family)


@dataclass(frozen=True)
class Placement:
    """A model and the name of its node."""

    model: Model
    name: str
    fault: str = ""
    """Error that keeps it from getting a node, or keeps its present node unchanged."""
    rival: str = ""
    """Another model that already has the name; this one gets no node."""


_known: dict[str, tuple[Slice[LeafModel], tuple[Model, ...]]] = {}
"""Cache by Cluster: its list and the models. Each plan asks several times, and lists may be long."""


def models_of(cluster: Cluster) -> tuple[Model, ...]:
    """Return the models in list order; one for the whole cluster if the list is empty."""
    listed = cluster.tree.leaf_models
    known = _known.get(cluster.name)
    if known is not None and known[0] is listed:
        return known[1]
    if len(_known) >= _REMEMBERED:
        _known.clear()
    made = tuple(_model(position, spec) for position, spec in enumerate(listed or (LeafModel(),)))
    _known[cluster.name] = listed, made
    return made


def _model(position: int, spec: LeafModel) -> Model:
    fault = model_fault(spec, f"spec.clusterTreeOptions.leafModels[{position}]")
    if spec.node_selector.label_selector is None:
        mode = Mode.NODE if spec.node_selector.node_name else Mode.WHOLE
        return Model(mode, position, spec, fault=fault)
    selector = _EVERYTHING if fault else from_object(spec.node_selector.label_selector)
    return Model(Mode.PARTY, position, spec, selector, fault)


def wanted_names(cluster: Cluster, mirrors: Mapping[str, TreeNode]) -> tuple[str, ...]:
    """Return the names of the Cluster's nodes. Another node with such a name is a conflict."""
    return tuple(each.name for each in placements(cluster, mirrors))


def placements(cluster: Cluster, mirrors: Mapping[str, TreeNode]) -> tuple[Placement, ...]:
    """Return every model with the name of its node, in list order."""
    models = models_of(cluster)
    holders: dict[str, Model] = {}
    placed: dict[int, Placement] = {}
    for model in models:
        if model.mode is not Mode.PARTY:
            name = model.leaf_node or names.whole_node(cluster.name)
            placed[model.position] = _place(model, name, holders)
    parties = [model for model in models if model.mode is Mode.PARTY]
    kept = _present_names(parties, mirrors_of(mirrors, cluster.name))
    holders |= {name: model for model in parties if (name := kept.get(model.position, "")) and name not in holders}
    for model in parties:
        name = kept.get(model.position, "")
        if holders.get(name) is not model:
            name = _free_name(model, holders, len(models))
        placed[model.position] = _place(model, name, holders)
    return tuple(placed[model.position] for model in models)


def _place(model: Model, name: str, holders: dict[str, Model]) -> Placement:
    holder = holders.setdefault(name, model)
    if holder is not model:
        return Placement(model, name, rival=holder.title)
    faults = subdomain_faults(name)
    fault = f"{model.title} would create a node named {name}, which is not a valid name: {faults[0]}" if faults else ""
    return Placement(model, name, model.fault or fault)


def _present_names(parties: list[Model], mirrors: Mapping[str, TreeNode]) -> dict[int, str]:
    """Return the present node of each party by position: its own, otherwise that of a party of the same name."""
    said = {name: text for name, node in mirrors.items() if (text := node.metadata.annotations.get(names.MODEL))}
    kept: dict[int, str] = {}
    for model in parties:
        _keep(kept, model, (name for name, text in said.items() if text == model.identity))
    for model in parties:
        if model.position not in kept:
            _keep(kept, model, (name for name, text in said.items() if model.is_kin(text)))
    return kept


def _keep(kept: dict[int, str], model: Model, candidates: Iterator[str]) -> None:
    taken = set(kept.values())
    found = sorted(name for name in candidates if name not in taken)
    if found:
        own = names.party_node(model.spec.leaf_node_name, model.position)
        kept[model.position] = own if own in found else found[0]


def _free_name(model: Model, holders: Mapping[str, Model], most: int) -> str:
    """Return the first free name from its position on. A name so long that the index is cut off has no alternative and
    stays its rival's."""
    first = names.party_node(model.spec.leaf_node_name, model.position)
    tried = (names.party_node(model.spec.leaf_node_name, model.position + step) for step in range(most + 1))
    return next((name for name in tried if name not in holders), first)


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
