"""How a plugin says no: a 403 that names the object, also one whose name is still to be generated."""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.errors import ApiError


def forbidden(attributes: Attributes, why: str) -> ApiError:
    resource = attributes.resource
    return errors.forbidden(resource.group, resource.plural, shown_name(attributes), why)


def shown_name(attributes: Attributes) -> str:
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or "Unknown"
