"""TaintNodesByCondition: a node starts out tainted as not ready, so that nothing lands on it before it is."""

from __future__ import annotations

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.plugins import Mutating
from nodeyard.apiserver.resources import GroupResource
from nodeyard.kube.json import Object
from nodeyard.kube.names import TAINT_NOT_READY
from nodeyard.kube.taints import NO_SCHEDULE, is_same, taints_of

_NODES = GroupResource("", "nodes")
_NOT_READY: Object = {"key": TAINT_NOT_READY, "effect": NO_SCHEDULE}


class TaintNodesByCondition(Mutating):
    async def mutate(self, attributes: Attributes) -> None:
        node = attributes.object
        if attributes.operation != "CREATE" or attributes.resource.key != _NODES or node is None:
            return
        taints = taints_of(node)
        if attributes.subresource or any(is_same(taint, _NOT_READY) for taint in taints):
            return
        spec = {**(node.get("spec") or {}), "taints": [*taints, _NOT_READY]}
        attributes.object = {**node, "spec": spec}
