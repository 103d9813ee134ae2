"""Content negotiation: the object itself, a Table for kubectl, or its metadata alone."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from nodeyard.apiserver.errors import ApiError

_OFFERED = (
    "application/json, application/yaml, application/vnd.kubernetes.protobuf, "
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
)


class Shape(Enum):
    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


class Form(NamedTuple):
    shape: Shape = Shape.OBJECT
    is_yaml: bool = False
    version: str = ""
    """The requested version of the shape's API: v1 of meta.k8s.io, v2 of apidiscovery.k8s.io."""


_SHAPES = {shape.value: shape for shape in Shape}


@lru_cache(maxsize=512)
def negotiate(accept: str) -> Form:
    """Return the first media type of the Accept header that can be served; raise a 406 if there is none."""
    if not accept.strip():
        return Form()
    for offer in accept.split(","):
        media_type, *parameters = (part.strip() for part in offer.split(";"))
        form = _form(media_type, dict(p.split("=", 1) for p in parameters if "=" in p))
        if form is not None:
            return form
    raise ApiError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {_OFFERED}", details={})


def _form(media_type: str, parameters: dict[str, str]) -> Form | None:
    if media_type not in ("application/json", "application/yaml", "application/*", "*/*"):
        return None
    shape = _SHAPES.get(parameters.get("as", ""))
    if shape is None:
        return None
    group, version = parameters.get("g", ""), parameters.get("v", "")
    if shape is Shape.DISCOVERY:
        return Form(shape, version=version) if group == "apidiscovery.k8s.io" and version == "v2" else None
    if shape is not Shape.OBJECT and (group, version) not in (("meta.k8s.io", "v1"), ("meta.k8s.io", "v1beta1")):
        return None
    return Form(shape, is_yaml=media_type == "application/yaml", version=version)
