"""Authentication: client certificates, bearer tokens of the users file, service account tokens, or anonymous.

Unknown credentials are refused with a 401. A request without any is made by `system:anonymous`.
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
    """Authenticates the users of a file and the service accounts of a store."""

    def __init__(self, accounts: ServiceAccountTokens, users: Iterable[KnownUser] = ()) -> None:
        self._accounts = accounts
        self._users: dict[str, User] = {}
        for known in users:
            self.add(known)

    def add(self, known: KnownUser) -> None:
        """Add a user to those of the file."""
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
        """Return the user of a token; tokens of the file are valid for the API server's audience only."""
        known = self._users.get(token)
        if known is not None:
            return known if ISSUER in audiences else None
        return self._accounts.identify(token, audiences)

    def audiences(self, token: str) -> tuple[str, ...]:
        """Return the audiences of a token."""
        return (ISSUER,) if token in self._users else self._accounts.audiences(token)

    def fault(self, token: str, audiences: tuple[str, ...]) -> str:
        """The reason why `identify` refused a token, as a TokenReview says it."""
        meant = self._accounts.audiences(token)
        if not meant or set(meant) & set(audiences):
            return "invalid bearer token"
        mismatch = f"token audiences {quoted(meant)} is invalid for the target audiences {quoted(audiences)}"
        return f"[invalid bearer token, {mismatch}]"


def bearer_token(request: Request) -> str:
    """The bearer token of the Authorization header; empty for another scheme or two blanks before it."""
    words = request.headers.get("authorization", "").strip().split(" ", 2)
    return words[1] if len(words) > 1 and words[0].lower() == "bearer" else ""
