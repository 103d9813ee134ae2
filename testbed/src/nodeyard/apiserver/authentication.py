"""Who asks: a client certificate, a known bearer token, a service account's token, or nobody.

Credentials that are shown and not recognised are refused (401); none at all is `system:anonymous`, whom authorization
lets see little.
"""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.apiserver.errors import unauthorized
from nodeyard.apiserver.rbac.rules import quoted
from nodeyard.apiserver.service_accounts import ServiceAccountTokens
from nodeyard.apiserver.tokens import ISSUER
from nodeyard.apiserver.transport import Request, User
from nodeyard.apiserver.user_file import KnownUser
from nodeyard.apiserver.users import ANONYMOUS, AUTHENTICATED, with_group


class Authenticator:
    """Knows the users of a file and the service accounts of a store."""

    def __init__(self, accounts: ServiceAccountTokens, users: Iterable[KnownUser] = ()) -> None:
        self._accounts = accounts
        self._users: dict[str, User] = {}
        for known in users:
            self.add(known)

    def add(self, known: KnownUser) -> None:
        """Let one more user in, from now on."""
        self._users[known.token] = with_group(known.user, AUTHENTICATED)

    def authenticate(self, request: Request) -> User:
        if request.user is not None:
            return request.user
        if request.peer is not None:
            return with_group(User(request.peer.common_name, request.peer.organizations), AUTHENTICATED)
        token = bearer_token(request)
        if not token:
            return ANONYMOUS
        user = self.identify(token)
        if user is None:
            raise unauthorized()
        return user

    def identify(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> User | None:
        """Who a token speaks for; users of the file are known to the API server's own audience alone."""
        known = self._users.get(token)
        if known is not None:
            return known if ISSUER in audiences else None
        return self._accounts.identify(token, audiences)

    def audiences(self, token: str) -> tuple[str, ...]:
        """Whom a token is meant for."""
        return (ISSUER,) if token in self._users else self._accounts.audiences(token)

    def fault(self, token: str, audiences: tuple[str, ...]) -> str:
        """Why `identify` did not take a token, in the words of a TokenReview."""
        meant = self._accounts.audiences(token)
        if not meant or set(meant) & set(audiences):
            return "invalid bearer token"
        mismatch = f"token audiences {quoted(meant)} is invalid for the target audiences {quoted(audiences)}"
        return f"[invalid bearer token, {mismatch}]"


def bearer_token(request: Request) -> str:
    """The token of the Authorization header; another scheme, or two blanks before the token, count as none."""
    words = request.headers.get("authorization", "").strip().split(" ", 2)
    return words[1] if len(words) > 1 and words[0].lower() == "bearer" else ""
