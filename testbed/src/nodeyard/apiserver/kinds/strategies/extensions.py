"""CustomResourceDefinitions as a kind; what they make of themselves is the business of `apiserver.definitions`."""

from __future__ import annotations

from nodeyard.apiserver.kinds.columns.printer import CREATED_AT
from nodeyard.apiserver.kinds.strategies.base import WithStatus


class DefinitionStrategy(WithStatus):
    definition = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    printer = CREATED_AT
