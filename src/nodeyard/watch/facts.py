"""What is known of the server itself: which versions of a kind it serves, and which cluster it is.

Nobody pays for what nobody asks. A view that asks has an `Inquiry`; the first question makes `Watches` find out, and
whoever was given another answer before is told when it changes.
"""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.client.discovery import Catalog


class Facts:
    """Of one server. `on_asked` is called when something is asked for the first time."""

    def __init__(self, on_asked: Callable[[], None] = lambda: None) -> None:
        self.uid = ""
        """Of the Namespace kube-system, which no two clusters share; empty while it is not known."""
        self.is_uid_asked = False
        self.are_versions_asked = False
        self._on_asked = on_asked
        self._versions: dict[tuple[str, str], tuple[str, ...]] | None = None
        self._inquiries: list[Inquiry] = []

    def inquire(self, on_news: Callable[[], None]) -> Inquiry:
        inquiry = Inquiry(self, on_news)
        self._inquiries.append(inquiry)
        return inquiry

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody asked for versions and they are not known yet."""
        return self.are_versions_asked and self._versions is None

    def versions(self, group: str, kind: str) -> tuple[str, ...] | None:
        """None while it is not known."""
        return None if self._versions is None else self._versions.get((group, kind), ())

    # asked by views

    def ask_uid(self) -> None:
        if not self.is_uid_asked:
            self.is_uid_asked = True
            self._on_asked()

    def ask_versions(self) -> None:
        if not self.are_versions_asked:
            self.are_versions_asked = True
            self._on_asked()

    # told by whoever found out

    def learn_versions(self, catalog: Catalog) -> None:
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for one in catalog.known:
            subject = (one.resource.group, one.resource.kind)
            known = found.get(subject, ())
            if one.resource.version not in known:
                found[subject] = (*known, one.resource.version)
        self._versions = found
        self._tell()

    def learn_uid(self, uid: str) -> None:
        self.uid = uid
        self._tell()

    def forget(self) -> None:
        """It is another server from here on; what it is like has to be found out."""
        self.uid, self._versions = "", None

    def _tell(self) -> None:
        for inquiry in self._inquiries:
            inquiry.compare()


class Inquiry:
    """What one view has asked, and the answers it was given."""

    def __init__(self, facts: Facts, on_news: Callable[[], None]) -> None:
        self._facts = facts
        self._on_news = on_news
        self._uid: str | None = None
        self._versions: dict[tuple[str, str], tuple[str, ...] | None] = {}

    @property
    def uid(self) -> str:
        self._facts.ask_uid()
        self._uid = self._facts.uid
        return self._uid

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        self._facts.ask_versions()
        answer = self._versions[group, kind] = self._facts.versions(group, kind)
        return answer or ()

    @property
    def is_answered(self) -> bool:
        """Whether every question about versions has had a true answer: none may also mean not asked yet."""
        return None not in self._versions.values()

    def compare(self) -> None:
        """Call for a new look where an answer is not what it was."""
        answers = {subject: self._facts.versions(*subject) for subject in self._versions}
        uid = None if self._uid is None else self._facts.uid
        if (answers, uid) != (self._versions, self._uid):
            self._versions, self._uid = answers, uid
            self._on_news()
