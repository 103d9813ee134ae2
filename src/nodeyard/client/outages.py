"""Rate-limited logging of API server outages: one line with the remedy, then one per minute while it lasts.

Watches, leader election and discovery all fail when a server is unreachable, and each retries. A common cause is logged
once for all of them; other failures are logged per subject.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from structlog.typing import FilteringBoundLogger

from nodeyard.client.errors import TransportError, Unauthorized

REPEAT_SECONDS: Final = 60.0
_UNREACHABLE: Final = "server unreachable"
_UNAUTHORIZED: Final = "credentials rejected"
_MISSING: Final = "kinds not served"
_COMMON: Final = (_UNREACHABLE, _UNAUTHORIZED)
_REMEDIES: Final = {
    _UNREACHABLE: "start the server, or correct its address in the kubeconfig; retrying",
    _UNAUTHORIZED: "renew the token or client certificate of the kubeconfig or service account; retrying",
    _MISSING: "run with --install-crds, or apply the output of `nodeyard crds`; retrying",
}


class Outages:
    """The outages logged by this process; thread-safe."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._logged_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def log(self, log: FilteringBoundLogger, event: str, subject: str, error: Exception, **fields: Any) -> None:
        """Log a failed request: a common cause if there is one, else `event` with the fields for this subject."""
        reason = str(error) or type(error).__name__
        cause = _common_cause(error)
        if cause:
            # "cannot connect to SERVER: ERROR": each unreachable server has its own line. The error's words differ
            # between event loops.
            if self._is_due(f"{cause}{reason.partition('cannot connect')[2].partition(': ')[0]}"):
                log.warning(cause, reason=reason, remedy=_REMEDIES[cause])
        elif self._is_due(f"{event} {subject} {reason}"):
            log.warning(event, **{"reason": reason, **fields})

    def log_missing(self, log: FilteringBoundLogger, kinds: Sequence[str]) -> None:
        """Log required kinds that the server does not serve."""
        if kinds and self._is_due(f"{_MISSING} {kinds}"):
            log.warning(_MISSING, kinds=list(kinds), remedy=_REMEDIES[_MISSING])

    def reset(self) -> None:
        """Reset common causes after the server has responded, so that the next outage is logged at once."""
        with self._lock:
            self._logged_at = {each: at for each, at in self._logged_at.items() if not each.startswith(_COMMON)}

    def _is_due(self, cause: str) -> bool:
        now = self._monotonic()
        with self._lock:
            last = self._logged_at.get(cause)
            if last is not None and now - last < REPEAT_SECONDS:
                return False
            self._logged_at = {each: at for each, at in self._logged_at.items() if now - at < REPEAT_SECONDS}
            self._logged_at[cause] = now
            return True


def _common_cause(error: Exception) -> str:
    if isinstance(error, TransportError) and not error.may_have_run:
        return _UNREACHABLE
    return _UNAUTHORIZED if isinstance(error, Unauthorized) else ""


OUTAGES: Final = Outages()
