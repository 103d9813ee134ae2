"""Questions to an API server about the kinds of profiles, and how a refusal has to look."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.definition import DEFINITIONS
from nodeyard.kube.json import Object
from nodeyard.testing import foreign
from nodeyard.testing.session import Session

STRICT = {"fieldValidation": "Strict"}
DRY = {"dryRun": "All", **STRICT}
ROOT = Path(__file__).parents[2]
PLURALS = {each.kind: each.plural for each in DEFINITIONS}


def samples() -> list[Object]:
    """The objects of the example and of its page, in their order."""
    files = sorted((ROOT / "examples" / "05-profiles").glob("*.yaml"))
    return [
        sample for text in (*(file.read_text() for file in files), *blocks()) for sample in yaml.safe_load_all(text)
    ]


def blocks() -> list[str]:
    """The YAML of the page, but for what is a part of an object."""
    page = (ROOT / "docs" / "profiles.md").read_text()
    return [text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if text.startswith("apiVersion")]


def session(api: Any) -> Session:
    """As the administrator of a server that has the definitions."""
    foreign.install(api.rest, [each.render() for each in DEFINITIONS])
    return Session(api.url, api.authority.pem, api.admin_token)


def path(body: Object) -> str:
    """Where objects of its kind are."""
    namespace = body["metadata"].get("namespace")
    scope = f"namespaces/{namespace}/" if namespace else ""
    return f"/apis/{body['apiVersion']}/{scope}{PLURALS[body['kind']]}"


def in_default(body: Object) -> Object:
    """The same, in a namespace that is always there."""
    is_cluster_wide = body["kind"] == names.SERVICE_KIND
    return body if is_cluster_wide else {**body, "metadata": {**body["metadata"], "namespace": "default"}}


def refused(answer: Any, field: str, message: str) -> None:
    """The field is named, with a message that begins like this."""
    assert (answer.status, answer.reason) == (422, "Invalid"), answer.content
    told = [cause for cause in answer.causes if message in cause["message"]]
    assert told, answer.causes
    assert told[0]["field"].removeprefix("<nil>") == field
