"""Kinds that a view shows only for as long as they are named: those that users declare while we run.

    own view ──declared(view)──▶ named ──┬─▶ Widget.example.dev   attached, watched where it is served
                                         └─▶ Gadget.example.dev   not named any more: detached, its cache dropped

Whoever asks the view for a kind that has just been declared finds it there, not synced yet: what is named and what is
shown are never apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nodeyard.process.logs import get_logger
from nodeyard.watch.aggregates import Fold
from nodeyard.watch.attachments import Attachment
from nodeyard.watch.feeds import Feed, Watched, full_name
from nodeyard.watch.indexes import Index
from nodeyard.watch.sources import Source, source_of

_log = get_logger("watches")

Attach = Callable[[Source, Sequence[Watched]], Attachment]
"""Hangs a view on the feed of a source."""


class Declared:
    """The declared kinds of one view, whose feeds, indexes and aggregates it adds to and takes from."""

    def __init__(
        self,
        ask: Callable[[], Iterable[Watched]],
        feeds: dict[str, Feed],
        indexes: dict[tuple[str, str], Index],
        folds: dict[str, Fold],
        attach: Attach,
    ) -> None:
        self._ask = ask
        self._feeds = feeds
        self._indexes = indexes
        self._folds = folds
        self._attach = attach
        self._known = frozenset(feeds)
        """What is watched anyway."""
        self._kept = frozenset(folds)
        """The aggregates that are there anyway."""
        self._attached: dict[Source, Attachment] = {}
        self._shown: tuple[list[str], list[tuple[str, str]], list[str]] = ([], [], [])
        self._left_out: frozenset[Source] = frozenset()
        self._is_asking = False

    @property
    def is_current(self) -> bool:
        """Whether what is shown is what is named now."""
        named = self._named()
        return named is None or named.keys() == self._attached.keys()

    def look(self) -> None:
        """Attach what is named and was not, detach what is not named any more."""
        named = self._named()
        if named is None:
            return
        is_other = False
        for source in [each for each in self._attached if each not in named]:
            _log.info("letting go", resource=str(source), reason="not declared any more")
            self._attached.pop(source).detach()
            is_other = True
        for source, watches in named.items():
            attachment = self._attached.get(source)
            if attachment is None:
                self._attached[source] = self._attach(source, watches)
                is_other = True
            else:
                is_other |= attachment.renew(watches)
        if is_other:
            self._show()

    def _named(self) -> dict[Source, list[Watched]] | None:
        """None where it cannot be said, or is being asked at this moment: then things stay as they are."""
        if self._is_asking:
            return None
        self._is_asking = True
        try:
            watches = tuple(self._ask())
        except Exception:
            _log.exception("keeping the declared kinds")
            return None
        finally:
            self._is_asking = False
        return self._sorted(watches)

    def _sorted(self, watches: Iterable[Watched]) -> dict[Source, list[Watched]]:
        """By source, one for each kind; of two ways to watch one kind the first counts."""
        first: dict[str, Source] = {}
        found: dict[Source, list[Watched]] = {}
        left_out = set()
        for watch in watches:
            name, source = full_name(watch.resource), source_of(watch)
            if name in self._known:
                continue
            if first.setdefault(name, source) == source:
                found.setdefault(source, []).append(watch)
            else:
                left_out.add(source)
        self._tell(left_out)
        return found

    def _tell(self, left_out: set[Source]) -> None:
        for source in left_out - self._left_out:
            _log.warning("leaving out", resource=str(source), version=source.resource.version,
                         reason="the kind is declared twice, in another version or with another selector")  # fmt: skip
        self._left_out = frozenset(left_out)

    def _show(self) -> None:
        """Under the full name, and the bare one where no other has it. Of aggregates with one name the first counts."""
        names, indexed, folded = self._shown
        for name in names:
            del self._feeds[name]
        for subject in indexed:
            del self._indexes[subject]
        for name in folded:
            del self._folds[name]
        kinds = [source.resource.kind for source in self._attached]
        feeds: dict[str, Feed] = {}
        indexes: dict[tuple[str, str], Index] = {}
        folds: dict[str, Fold] = {}
        for source, attachment in self._attached.items():
            kind = source.resource.kind
            is_alone = kinds.count(kind) == 1 and not any(name.partition(".")[0] == kind for name in self._known)
            for name in [full_name(source.resource), kind][: 2 if is_alone else 1]:
                feeds[name] = attachment.feed
                indexes |= {(name, index): found for index, found in attachment.indexes.items()}
            taken = self._kept | folds.keys()
            folds |= {name: fold for name, fold in attachment.folds.items() if name not in taken}
        self._feeds |= feeds
        self._indexes |= indexes
        self._folds |= folds
        self._shown = [*feeds], [*indexes], [*folds]
