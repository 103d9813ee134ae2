"""Which actions may start, as others end. No waiting and no I/O: only the order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodeyard.plan.model import Action


class Schedule:
    """Raises ValueError where two actions share an id: which of them others come after could not be told."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions = {action.id: action for action in actions}
        if len(self._actions) < len(actions):
            raise ValueError("two actions of a plan have the same id")
        self._missing = {action.id: set(action.after) for action in self._actions.values()}
        self._dependents: dict[str, list[str]] = {}
        for action in self._actions.values():
            for each in set(action.after):
                self._dependents.setdefault(each, []).append(action.id)

    def first(self) -> list[Action]:
        """Those that come after nothing."""
        return [action for action in self._actions.values() if not self._missing[action.id]]

    @property
    def width(self) -> int:
        """No more than this many can be under way at once."""
        return len(self.first()) + sum(len(each) - 1 for each in self._dependents.values())

    def never(self) -> Iterator[tuple[Action, str]]:
        """Those that can never start, whatever the others do, and why."""
        reached = [action.id for action in self.first()]
        missing = {each: len(after) for each, after in self._missing.items()}
        for each in reached:
            for dependent in self._dependents.get(each, ()):
                missing[dependent] -= 1
                if not missing[dependent]:
                    reached.append(dependent)
        for each in self._actions.keys() - set(reached):
            unknown = sorted(self._missing[each] - self._actions.keys())
            why = f"comes after {unknown[0]}, which is not in the plan" if unknown else "comes after itself"
            yield self._actions[each], why

    def succeeded(self, action: Action) -> list[Action]:
        """Those that may start now that this one has succeeded."""
        ready = []
        for each in self._dependents.get(action.id, ()):
            self._missing[each].discard(action.id)
            if not self._missing[each]:
                ready.append(self._actions[each])
        return ready

    def behind(self, action: Action) -> list[Action]:
        """Everything that comes after this one, at any remove."""
        found: dict[str, Action] = {}
        pending = [action.id]
        while pending:
            for each in self._dependents.get(pending.pop(), ()):
                if each not in found and each in self._actions:
                    found[each] = self._actions[each]
                    pending.append(each)
        return list(found.values())
