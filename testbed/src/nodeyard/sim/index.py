"""Index of the simulated objects: marks, references between objects, and counts.

Each change updates references and counts incrementally, so that it costs the same however many objects there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

from nodeyard.kube.json import Object
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import Count, Relation, StageSet


class Key(NamedTuple):
    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind.kind} {self.name}"


def key_of(kind: Kind, obj: Object) -> Key:
    metadata = obj["metadata"]
    return Key(kind, metadata.get("namespace", ""), metadata["name"])


@dataclass(slots=True, eq=False)
class Entity:
    """An object as last seen. It is the `Subject` of conditions and templates."""

    key: Key
    object: Object
    index: Index

    def is_marked(self, mark: str) -> bool:
        return mark in self.index.marks(self.key)

    def count(self, name: str) -> int:
        return self.index.count(name, self)

    def related(self, relation: str) -> Entity | None:
        return self.index.target(relation, self)


_UNMARKED: frozenset[str] = frozenset()


class Index:
    def __init__(self, stages: StageSet) -> None:
        self._stages = stages
        self._entities: dict[Kind, dict[Key, Entity]] = defaultdict(dict)
        self._marks: dict[Key, set[str]] = {}
        self._referrers: dict[str, dict[str, dict[Key, Entity]]] = {name: {} for name in stages.relations}
        """By relation and id of the target, in the order of arrival."""
        self._targets: dict[str, dict[str, Entity]] = {name: {} for name in stages.relations}
        self._counted: dict[str, dict[str, dict[Key, Entity]]] = {name: {} for name in stages.counts}
        self._of: dict[Kind, list[Relation]] = defaultdict(list)
        self._to: dict[Kind, list[Relation]] = defaultdict(list)
        self._counts: dict[str, list[Count]] = defaultdict(list)
        for relation in stages.relations.values():
            self._of[relation.of].append(relation)
            self._to[relation.to].append(relation)
        for count in stages.counts.values():
            self._counts[count.relation].append(count)

    # lookups

    def get(self, key: Key) -> Entity | None:
        return self._entities[key.kind].get(key)

    def all(self, kind: Kind) -> Iterable[Entity]:
        return self._entities[kind].values()

    def marks(self, key: Key) -> Set[str]:
        return self._marks.get(key, _UNMARKED)

    def target(self, relation: str, entity: Entity) -> Entity | None:
        """Return the object that this one refers to."""
        name = self._stages.relations[relation].key_of(entity.object)
        return self._targets[relation].get(name) if name is not None else None

    def referrers(self, relation: str, entity: Entity) -> list[Entity]:
        """Return the objects that refer to this one."""
        name = self._stages.relations[relation].id_of(entity.object)
        return list(self._referrers[relation].get(name, {}).values()) if name is not None else []

    def count(self, name: str, entity: Entity) -> int:
        count = self._stages.counts[name]
        target = self._stages.relations[count.relation].id_of(entity.object)
        return len(self._counted[name].get(target, ())) if target is not None else 0

    # changes; each returns the objects that it may concern

    def put(self, key: Key, obj: Object) -> list[Entity]:
        entities = self._entities[key.kind]
        entity = entities.get(key)
        if entity is None:
            entity = entities[key] = Entity(key, obj, self)
            return _unique([entity, *self._update_relations(entity, None, obj)])
        old, entity.object = entity.object, obj
        return _unique([entity, *self._update_relations(entity, old, obj)])

    def remove(self, key: Key) -> list[Entity]:
        entity = self._entities[key.kind].pop(key, None)
        if entity is None:
            return []
        affected = _unique(self._update_relations(entity, entity.object, None))
        self._marks.pop(key, None)
        return affected

    def mark(self, key: Key, mark: str, *, is_on: bool) -> list[Entity]:
        """Set or clear a mark, which may be set before the object is seen and is dropped with it."""
        marks = self._marks.setdefault(key, set())
        if (mark in marks) == is_on:
            return []
        if is_on:
            marks.add(mark)
        else:
            marks.discard(mark)
        entity = self.get(key)
        return _unique([entity, *self._update_relations(entity, entity.object, entity.object)]) if entity else []

    def _update_relations(self, entity: Entity, old: Object | None, new: Object | None) -> Iterator[Entity]:
        for relation in self._of[entity.key.kind]:
            before = relation.key_of(old) if old is not None else None
            after = relation.key_of(new) if new is not None else None
            yield from self._update_reference(relation, entity, before, after)
        for relation in self._to[entity.key.kind]:
            before = relation.id_of(old) if old is not None else None
            after = relation.id_of(new) if new is not None else None
            if before is not None and before != after:
                self._targets[relation.name].pop(before, None)
                yield from self._notified_referrers(relation, before)
            if after is not None:
                self._targets[relation.name][after] = entity
                yield from self._notified_referrers(relation, after)

    def _update_reference(
        self, relation: Relation, entity: Entity, before: str | None, after: str | None
    ) -> Iterator[Entity]:
        """Index the entity under its target and under the target's counts; yield the targets that this concerns."""
        referrers, targets = self._referrers[relation.name], self._targets[relation.name]
        has_moved = is_affected = before != after
        if has_moved and before is not None:
            _discard(referrers, before, entity.key)
        if has_moved and after is not None:
            referrers.setdefault(after, {})[entity.key] = entity
        for count in self._counts[relation.name]:
            counted = self._counted[count.name]
            was = before is not None and entity.key in counted.get(before, ())
            is_now = after is not None and count.where(entity)
            if before is not None and was and (has_moved or not is_now):
                _discard(counted, before, entity.key)
            if after is not None and is_now and (has_moved or not was):
                counted.setdefault(after, {})[entity.key] = entity
            is_affected = is_affected or was != is_now
        if is_affected or relation.name in self._stages.notify_targets:
            yield from (targets[name] for name in (before, after) if name is not None and name in targets)

    def _notified_referrers(self, relation: Relation, name: str) -> list[Entity]:
        if relation.name not in self._stages.notify_referrers:
            return []
        return list(self._referrers[relation.name].get(name, {}).values())


def _discard(table: dict[str, dict[Key, Entity]], name: str, key: Key) -> None:
    entities = table.get(name)
    if entities is not None:
        entities.pop(key, None)
        if not entities:
            del table[name]


def _unique(entities: Iterable[Entity]) -> list[Entity]:
    """Return each entity once, in the given order."""
    return list({entity.key: entity for entity in entities}.values())
