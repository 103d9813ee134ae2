"""What a stage looks at: one object, seen together with its marks, its counts and the objects it is related to."""

from __future__ import annotations

from typing import Protocol

from nodeyard.kube.json import Object


class Subject(Protocol):
    @property
    def object(self) -> Object: ...

    def is_marked(self, mark: str) -> bool:
        """A mark is something the world knows of an object and the API server does not."""

    def count(self, name: str) -> int:
        """How many objects stand to this one as a count of the book says."""

    def related(self, relation: str) -> Subject | None:
        """The one object this one points to."""
