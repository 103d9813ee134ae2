"""Nodes: registered whole, then spec and status apart."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds import node as nodes
from nodeyard.apiserver.kinds.columns import nodes as columns
from nodeyard.apiserver.kinds.strategy import WithStatus, flag
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object


class NodeStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Node"
    plural = "nodes"
    namespaced = False
    short_names = ("no",)
    printer = columns.NODE
    uses_generation = False
    has_own_field_labels = True
    fields = {"spec.unschedulable": flag("spec", "unschedulable")}

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        """A kubelet registers its node with status."""
        return obj

    def validate_create(self, obj: Object) -> list[FieldError]:
        return nodes.create_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return nodes.update_errors(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return nodes.status_errors(new, old)
