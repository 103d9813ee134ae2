"""Watch history of nodes. Tests search it for states that must never exist, even for a moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodeyard.capabilities.spares import names
from nodeyard.testing.session import Session


class History:
    """All events of nodes since its creation."""

    def __init__(self, api: Any) -> None:
        self._session = Session(api.url, api.authority.pem, api.admin_token)
        self._since = self._session.get("/api/v1/nodes?limit=1").json["metadata"]["resourceVersion"]

    def events(self) -> list[dict[str, Any]]:
        """Return the events in order."""
        query = {"resourceVersion": self._since, "timeoutSeconds": 3}
        with self._session.watch("/api/v1/nodes", query=query) as events:
            return list(events)

    def assert_sound(self, asked: Mapping[str, int]) -> None:
        """Assert that no node changed its owner directly, and no template ever had more nodes than it asked for."""
        owners: dict[str, str] = {}
        for event in self.events():
            name, labels = event["object"]["metadata"]["name"], event["object"]["metadata"].get("labels", {})
            owner = "" if event["type"] == "DELETED" else labels.get(names.TEMPLATE_LABEL, "")
            assert owners.get(name, owner) in ("", owner) or not owner, f"{name} went to {owner} from {owners[name]}"
            owners[name] = owner
            for template, count in asked.items():
                has = sum(1 for each in owners.values() if each == template)
                assert has <= count, f"{template} asked for {count} and had {has}"
