"""What an informer watches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from nodeyard.client.resources import Resource
from nodeyard.kube.objects import PartialObject
from nodeyard.kube.selectors import parse_labels
from nodeyard.watch.cache import Selection


class Chosen(Protocol):
    """What is said of a watch that makes its source."""

    @property
    def resource(self) -> Resource[Any]: ...
    @property
    def label_selector(self) -> str: ...
    @property
    def field_selector(self) -> str: ...
    @property
    def metadata_only(self) -> bool: ...
    @property
    def older(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Source:
    """What is watched: equal sources share one informer."""

    resource: Resource[Any]
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    older: tuple[str, ...] = ()
    """Versions to watch instead where the server does not have the resource's own, the best first."""

    @property
    def selection(self) -> Selection | None:
        if not self.label_selector and not self.field_selector:
            return None
        return Selection(parse_labels(self.label_selector), takes_newcomers=not self.field_selector)

    @property
    def decoded(self) -> Resource[Any]:
        """With the type its objects are kept as: of metadata alone there is no more than a PartialObject to have."""
        is_whole = not self.metadata_only or self.resource.view is not dict
        return self.resource if is_whole else self.resource.decoded_as(PartialObject)

    def __str__(self) -> str:
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        return f"{self.resource}[{selectors}]" if selectors else str(self.resource)


def source_of(watch: Chosen) -> Source:
    return Source(watch.resource, watch.label_selector, watch.field_selector, watch.metadata_only, watch.older)
