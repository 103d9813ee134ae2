"""Requests to an API server about the kinds of profiles, and checks of its denials."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.definition import DEFINITIONS
from nodeyard.kube.json import Object
from nodeyard.testing import third_party_crds
from nodeyard.testing.session import Session

STRICT = {"fieldValidation": "Strict"}
DRY = {"dryRun": "All", **STRICT}
ROOT = Path(__file__).parents[2]
PLURALS = {each.kind: each.plural for each in DEFINITIONS}


def samples() -> list[Object]:
    """Return the objects of the example and of docs/profiles.md, in order."""
    files = sorted((ROOT / "examples" / "05-profiles").glob("*.yaml"))
    return [
        sample for text in (*(file.read_text() for file in files), *blocks()) for sample in yaml.safe_load_all(text)
    ]


def blocks() -> list[str]:
    """Return the complete objects in YAML blocks of the page."""
    page = (ROOT / "docs" / "profiles.md").read_text()
    return [text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if text.startswith("apiVersion")]


def session(api: Any) -> Session:
    """Return an admin client of a server that has the CRDs."""
    third_party_crds.install(api.rest, [each.render() for each in DEFINITIONS])
    return Session(api.url, api.authority.pem, api.admin_token)


def path(body: Object) -> str:
    """Return the collection path of an object."""
    namespace = body["metadata"].get("namespace")
    scope = f"namespaces/{namespace}/" if namespace else ""
    return f"/apis/{body['apiVersion']}/{scope}{PLURALS[body['kind']]}"


def in_default(body: Object) -> Object:
    """Return the object in a namespace that always exists."""
    is_cluster_wide = body["kind"] == names.SERVICE_KIND
    return body if is_cluster_wide else {**body, "metadata": {**body["metadata"], "namespace": "default"}}


def refused(answer: Any, field: str, message: str) -> None:
    """Check that the denial names the field, with this message."""
    assert (answer.status, answer.reason) == (422, "Invalid"), answer.content
    told = [cause for cause in answer.causes if message in cause["message"]]
    assert told, answer.causes
    assert told[0]["field"].removeprefix("<nil>") == field
