"""Kubernetes API client; no other package sends requests to a cluster.

    kubeconfig or in-cluster ─▶ Config ─▶ Transport ─▶ Client: get, list, watch, create, patch, apply, delete, evict

A `Client` uses a `Transport`: `HttpTransport` (sockets, TLS, credentials), or the testbed's, which calls a function.
All its exceptions are in `errors`.
"""

from nodeyard.client.api import Client
from nodeyard.client.decoder import Bookmark, Malformed, WatchEvent
from nodeyard.client.errors import (
    AdmissionDenied,
    AlreadyExists,
    ApiError,
    BadRequest,
    ClientError,
    ConfigError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
    TransportTimeout,
    Unauthorized,
)
from nodeyard.client.resources import Resource

__all__ = [
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
