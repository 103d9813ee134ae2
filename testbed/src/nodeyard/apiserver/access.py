"""Authentication, impersonation and authorization of one server."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.apiserver.access_reviews import Reviews
from nodeyard.apiserver.authentication import Authenticator
from nodeyard.apiserver.authorization import Authorizer
from nodeyard.apiserver.impersonation import impersonate
from nodeyard.apiserver.rbac.index import RbacIndex
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.service_accounts import ServiceAccountTokens
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.tokens import TokenSigner
from nodeyard.apiserver.transport import Request, User
from nodeyard.apiserver.user_file import KnownUser
from nodeyard.process.clock import Clock


class AccessControl:
    """Access control of one store's cluster."""

    def __init__(
        self, store: Store, clock: Clock, users: Iterable[KnownUser] = (), signer: TokenSigner | None = None
    ) -> None:
        self.tokens = ServiceAccountTokens(store, clock, signer)
        self.authenticator = Authenticator(self.tokens, users)
        self.authorizer = Authorizer(RbacIndex(store))
        self.reviews = Reviews(self.authenticator, self.authorizer, clock)

    def check(self, request: Request, info: RequestInfo) -> User:
        """Return the user the request acts as; raise the 401, 400 or 403 as ApiError."""
        user = self.authenticator.authenticate(request)
        user = impersonate(request, info, user, self.authorizer)
        self.authorizer.check(user, info)
        return user
