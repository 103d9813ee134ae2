"""The API server accepts what is registered for affinity: selectors, rules and conditions."""

from __future__ import annotations

import pytest

from nodeyard.admission.client_config import ByUrl
from nodeyard.admission.configurations import MUTATING, VALIDATING, configuration
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.testing.session import Session

DRY = {"dryRun": "All", "fieldValidation": "Strict"}


@pytest.mark.parametrize("resource", [MUTATING, VALIDATING], ids=["mutating", "validating"])
def test_the_server_takes_the_webhooks(api, resource):
    http = Session(api.url, api.authority.pem, api.admin_token)
    body = configuration(resource, AFFINITY, ByUrl("https://127.0.0.1:9443"), api.authority.pem)

    answer = http.post(resource.path(), {"apiVersion": resource.api_version, "kind": resource.kind, **body}, query=DRY)

    assert answer.status == 201, answer.message
    assert answer.warnings == []
