"""Stage files, read and compiled into one `Book`: what may happen in a world, ready to be asked.

Everything that can be wrong with a file is found here, when it is loaded, and named with the file and the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

import msgspec

from nodeyard.kube.json import Json, Object
from nodeyard.kube.manifests import ManifestError, load
from nodeyard.kube.selectors import LabelSelector, SelectorError, parse_labels
from nodeyard.sim.action_types import Action, compile_action
from nodeyard.sim.conditions import Condition, compile_conditions, references
from nodeyard.sim.paths import Path, parse_path
from nodeyard.sim.seeded_random import Chance
from nodeyard.sim.services import stages_for
from nodeyard.sim.stage_format import (
    BookSpec,
    CountSpec,
    DelaySpec,
    Kind,
    RelationSpec,
    StageSpec,
    seconds,
)

SHIPPED = ("nodes", "pods", "scheduling", "drains", "providers", "machines", "services", "releases")


class StageError(ValueError):
    """A stage file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Objects of kind `of` name one of kind `to`."""

    name: str
    of: Kind
    to: Kind
    is_owner: bool
    key: Path | None
    id: Path
    is_local: bool
    """Within a namespace only."""

    def key_of(self, obj: Object) -> str | None:
        """Whom this object points to."""
        if self.key is not None:
            return self._located(obj, _text(self.key.get(obj)))
        for owner in obj["metadata"].get("ownerReferences") or ():
            if owner.get("controller") and owner.get("kind") == self.to.kind:
                return _text(owner.get("uid"))
        return None

    def id_of(self, obj: Object) -> str | None:
        """By which name this object is pointed to."""
        return self._located(obj, _text(self.id.get(obj)))

    def _located(self, obj: Object, name: str | None) -> str | None:
        if name is None or not self.is_local:
            return name
        return f"{obj['metadata'].get('namespace', '')}/{name}"


@dataclass(frozen=True, slots=True)
class Count:
    name: str
    relation: str
    where: Condition


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    kind: Kind
    labels: LabelSelector
    where: Condition
    delay: Callable[[Object, Chance, str, int], float]
    repeat: bool
    chance: float
    actions: tuple[Action, ...]
    next: str | None
    starts_itself: bool
    """Not one that another stage leads to by `next`."""
    follows: bool
    """It acts again after each change."""


@dataclass(frozen=True, slots=True)
class Book:
    stages: tuple[Stage, ...]
    relations: Mapping[str, Relation]
    counts: Mapping[str, Count]
    looks_up: frozenset[str]
    """Relations that conditions follow: what they lead to matters to who points there."""
    listens_to: frozenset[str]
    """Relations the other way round: who points there matters to what they lead to."""

    @property
    def kinds(self) -> list[Kind]:
        """Every kind that must be watched, in a fixed order."""
        kinds = {stage.kind for stage in self.stages}
        for relation in self.relations.values():
            kinds |= {relation.of, relation.to}
        return sorted(kinds)


def load_book(*names: str, extra: Iterable[FilePath] = (), services: Collection[Kind] = ()) -> Book:
    """The stage files of these names that come with Nodeyard, and those in `extra`, as one book; and the operators of
    services of these kinds."""
    directory = files("nodeyard.sim") / "stages"
    texts = []
    for name in names:
        source = directory / f"{name}.yaml"
        if not source.is_file():
            raise StageError(f'no stages "{name}"; there are: {", ".join(SHIPPED)}')
        texts.append((f"{name}.yaml", source.read_text()))
    texts += [(str(path), path.read_text()) for path in extra]
    if services:
        texts.append(stages_for(services))
    return parse_book(texts)


def parse_book(texts: Iterable[tuple[str, str]]) -> Book:
    """Pairs of a file's name and text."""
    specs = [(name, _parse(name, text)) for name, text in texts]
    relations: dict[str, Relation] = {}
    counts: dict[str, Count] = {}
    stages: list[tuple[str, StageSpec]] = []
    followed: set[str] = set()
    for name, spec in specs:
        for relation_name, relation in spec.relations.items():
            relations[relation_name] = _guarded(name, f"relation {relation_name}", _relation, relation_name, relation)
        for count_name, count in spec.counts.items():
            counts[count_name] = _guarded(name, f"count {count_name}", _count, count_name, count)
        stages += [(name, stage) for stage in spec.stages]
    led_to = {stage.next for _, stage in stages if stage.next}
    compiled = [
        _guarded(name, f"stage {stage.name}", _stage, stage, stage.name not in led_to) for name, stage in stages
    ]
    heard: set[str] = set()
    for name, stage in stages:
        followed |= references(stage.where)[0]
        there, back = _guarded(name, f"stage {stage.name}", _directions, stage, relations)
        followed |= there
        heard |= back
    book = Book(tuple(compiled), relations, counts, frozenset(followed), frozenset(heard))
    for name, stage in stages:
        _guarded(name, f"stage {stage.name}", _check_names, stage, book)
    for count_value in counts.values():
        _guarded("counts", count_value.name, _check_relation, count_value.relation, book)
    return book


def _parse(name: str, text: str) -> BookSpec:
    try:
        return msgspec.convert(load(text), BookSpec)
    except (ManifestError, msgspec.ValidationError) as error:
        raise StageError(f"{name}: {error}") from None


def _guarded(file: str, what: str, build: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return build(*arguments)
    except (ValueError, SelectorError) as error:
        raise StageError(f"{file}, {what}: {error}") from None


def _relation(name: str, spec: RelationSpec) -> Relation:
    is_owner = spec.key == "owner"
    return Relation(
        name,
        spec.of.key,
        spec.to.key,
        is_owner,
        None if is_owner else parse_path(spec.key),
        parse_path("metadata.uid" if is_owner else spec.id),
        spec.within == "namespace",
    )


def _count(name: str, spec: CountSpec) -> Count:
    relations, counts = references(spec.where)
    if relations or counts:
        raise ValueError("where: a count looks at the counted object alone, not at related ones or counts")
    return Count(name, spec.relation, compile_conditions(spec.where))


def _stage(spec: StageSpec, starts_itself: bool) -> Stage:
    if not 0 < spec.chance <= 1:
        raise ValueError(f"chance: {spec.chance} is not above 0 and at most 1")
    delay = _delay(spec.delay)
    if spec.repeat and isinstance(spec.delay, float) and spec.delay <= 0:
        raise ValueError("repeat: needs a delay")
    return Stage(
        spec.name,
        spec.kind.key,
        parse_labels(spec.labels),
        compile_conditions(spec.where),
        delay,
        spec.repeat,
        spec.chance,
        tuple(compile_action(action) for action in spec.do),
        spec.next,
        starts_itself,
        spec.follows is not None,
    )


def _directions(spec: StageSpec, relations: Mapping[str, Relation]) -> tuple[set[str], set[str]]:
    """The relations that a stage follows: those that start at its kind, and those that end there."""
    there: set[str] = set()
    back: set[str] = set()
    for name in spec.follows or ():
        relation = relations.get(name)
        if relation is None or spec.kind.key not in (relation.of, relation.to):
            raise ValueError(f'follows: no relation "{name}" of {spec.kind.key}')
        (there if relation.of == spec.kind.key else back).add(name)
    return there, back


def _delay(spec: Any) -> Callable[[Object, Chance, str, int], float]:
    if isinstance(spec, DelaySpec):
        return _delay_of_field(spec)
    if isinstance(spec, list):
        if len(spec) != 2:
            raise ValueError("delay: a range has two ends")
        low, high = (seconds(end) for end in spec)
        return lambda obj, chance, what, times: chance.between(low, high, "delay", what, times)
    fixed = seconds(spec)
    return lambda obj, chance, what, times: fixed


def _delay_of_field(spec: DelaySpec) -> Callable[[Object, Chance, str, int], float]:
    path, default = parse_path(spec.path), seconds(spec.default)
    limit = seconds(spec.at_most) if spec.at_most is not None else float("inf")

    def delay(obj: Object, chance: Chance, what: str, times: int) -> float:
        value = path.get(obj)
        return min(seconds(value) if value is not None else default, limit)

    return delay


def _check_names(spec: StageSpec, book: Book) -> None:
    if spec.next and all(stage.name != spec.next for stage in book.stages):
        raise ValueError(f'next: no stage "{spec.next}"')
    relations, counts = references(spec.where)
    for action in spec.do:
        relations |= compile_action(action).relations
    for name in relations:
        _check_relation(name, book)
    for name in counts:
        if name not in book.counts:
            raise ValueError(f'no count "{name}"; known: {", ".join(sorted(book.counts)) or "none"}')


def _check_relation(name: str, book: Book) -> None:
    if name not in book.relations:
        raise ValueError(f'no relation "{name}"; known: {", ".join(sorted(book.relations)) or "none"}')


def _text(value: Json) -> str | None:
    return None if value is None or value == "" else str(value)
