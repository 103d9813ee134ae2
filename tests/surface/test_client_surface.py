"""The public names of `nodeyard.client`."""

import inspect

import nodeyard.client as client
from nodeyard.client.api import Client


def test_the_package_exports_exactly_this():
    assert sorted(client.__all__) == [
        "AdmissionDenied",
        "AlreadyExists",
        "ApiError",
        "BadRequest",
        "Bookmark",
        "Client",
        "ClientError",
        "ConfigError",
        "Conflict",
        "Expired",
        "Forbidden",
        "Invalid",
        "Malformed",
        "NotFound",
        "Resource",
        "ServerError",
        "TooManyRequests",
        "TransportError",
        "TransportTimeout",
        "Unauthorized",
        "WatchEvent",
    ]


def test_a_client_has_exactly_these_verbs():
    verbs = [name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")]
    assert verbs == [
        "apply",
        "catalog",
        "close",
        "create",
        "create_part",
        "delete",
        "evict",
        "get",
        "list",
        "managed_by",
        "pages",
        "patch",
        "server_version",
        "update",
        "watch",
    ]
