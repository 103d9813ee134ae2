"""Requests to an API server with the CRDs of pools, and assertions on rejections."""

from __future__ import annotations

from typing import Any

from nodeyard.capabilities.pools.definition import DEFINITIONS
from nodeyard.testing import third_party_crds
from nodeyard.testing.session import Session

CLUSTERS = "/apis/lattice.dev/v1alpha1/latticeclusters"
CLASSES = "/apis/lattice.dev/v1alpha1/latticenodeclasses"
SERVICES = "/apis/lattice.dev/v1alpha1/namespaces/default/latticeservices"
DRY = {"dryRun": "All", "fieldValidation": "Strict"}

KEY = "a key is a name of at most 63 letters, digits, '-', '_' and '.', after an optional DNS prefix and slash"
VALUE = "a value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"


def session(api: Any) -> Session:
    """Client with admin rights on a server that has the CRDs."""
    third_party_crds.install(api.rest, [each.render() for each in DEFINITIONS])
    return Session(api.url, api.authority.pem, api.admin_token)


def refused(answer: Any, field: str, message: str) -> None:
    """Assert that the field is named with exactly this message."""
    assert (answer.status, answer.reason) == (422, "Invalid"), answer.content
    told = [cause for cause in answer.causes if cause["message"].endswith(message)]
    assert told, answer.causes
    assert told[0]["field"].removeprefix("<nil>") == field
