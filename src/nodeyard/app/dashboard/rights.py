"""Rights of a viewer, from SelfSubjectAccessReviews made with the viewer's own credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from nodeyard.app.approvals import whoami
from nodeyard.client.api import Client
from nodeyard.client.config import Config, Credentials
from nodeyard.client.errors import ClientError, Unauthorized
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.resources import EVENTS, NODES, Resource, untyped
from nodeyard.dashboard.access import Viewer
from nodeyard.dashboard.wire import Refused
from nodeyard.runtime.capability import Capability

_REVIEWS: Final = untyped("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")
_TOKEN_MAX: Final = 16 * 1024
_UNSHOWN: Final = frozenset({"Lease"})
"""Namespaced kinds that are watched, but of which the page shows nothing."""


async def local_viewer(client: Client, config: Config, capabilities: Sequence[Capability]) -> Viewer:
    """Return the viewer of a kubeconfig. The caches are read with the same credentials, so all of them may be seen."""
    name, can_approve = await asyncio.gather(whoami(client), _may_approve(client, capabilities))
    return Viewer(name or "unknown", client, config, can_approve)


async def token_viewer(config: Config, token: str, capabilities: Sequence[Capability]) -> Viewer:
    """Return the viewer of a bearer token. Raises Refused if it is not valid or may not list nodes.

    The caches have what the operator may read. The viewer sees a capability only if the token may list, in all
    namespaces, the kinds that the capability shows.
    """
    if not token or len(token) > _TOKEN_MAX or not token.isascii() or not token.isprintable():
        raise Refused(401, "This is not a bearer token.", "Paste the token alone, without quotes.")
    own = replace(config, credentials=Credentials(token=token))
    client = Client(HttpTransport(own))
    try:
        if not await _may(client, "list", NODES):
            remedy = "Ask for the ClusterRole nodeyard-reader."
            raise Refused(403, "The account may not list nodes, so it may not see this page.", remedy)
        seen = await asyncio.gather(*(_may_see(client, each) for each in capabilities))
        visible = [each for each, is_seen in zip(capabilities, seen, strict=True) if is_seen]
        name, can_approve = await asyncio.gather(whoami(client), _may_approve(client, visible))
    except BaseException as error:
        await client.close()
        if isinstance(error, Unauthorized):
            raise Refused(401, "The cluster does not accept this token.", "Get a new one and sign in again.") from None
        raise
    return Viewer(name or "unknown", client, own, can_approve, frozenset(each.name for each in visible))


async def _may_see(client: Client, capability: Capability) -> bool:
    watched = [watch.resource for watch in capability.watches if watch.resource.namespaced]
    shown = {str(each): each for each in (*(kind.resource for kind in capability.kinds), *watched)}
    found = await asyncio.gather(*(_may(client, "list", each) for each in shown.values() if each.kind not in _UNSHOWN))
    return all(found)


async def may_list_events(client: Client) -> bool:
    """Return whether the recorder may read what operators report; without it, the page shows less."""
    try:
        return await _may(client, "list", EVENTS)
    except ClientError:
        return False


async def _may_approve(client: Client, capabilities: Sequence[Capability]) -> bool:
    """Return whether the viewer may annotate some root object; the server decides about each single approval."""
    roots = [kind.resource for each in capabilities for kind in each.kinds]
    try:
        return any(await asyncio.gather(*(_may(client, "patch", each) for each in roots)))
    except ClientError:
        return False


async def _may(client: Client, verb: str, resource: Resource[Any]) -> bool:
    attributes = {"verb": verb, "group": resource.group, "resource": resource.plural}
    review = await client.create(
        _REVIEWS,
        {
            "apiVersion": _REVIEWS.api_version,
            "kind": _REVIEWS.kind,
            "metadata": {},
            "spec": {"resourceAttributes": attributes},
        },
    )
    return (review.get("status") or {}).get("allowed") is True
