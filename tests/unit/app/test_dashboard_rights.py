"""Rights of a viewer of the dashboard."""

import pytest

from nodeyard.app.dashboard.rights import may_list_events
from nodeyard.client.errors import NoCluster


class Answering:
    """A cluster that answers every access review alike."""

    def __init__(self, answer):
        self._answer = answer

    async def create(self, _resource, body):
        assert body["spec"]["resourceAttributes"] == {"verb": "list", "group": "events.k8s.io", "resource": "events"}
        if isinstance(self._answer, Exception):
            raise self._answer
        return {"status": {"allowed": self._answer}}


@pytest.mark.parametrize(
    ("answer", "may"), [(True, True), (False, False), (NoCluster("no route to the cluster"), False)]
)
async def test_events_are_watched_only_with_the_right_to_list_them(answer, may):
    assert await may_list_events(Answering(answer)) is may
